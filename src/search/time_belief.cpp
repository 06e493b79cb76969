#include "headroom/search/time_belief.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <random>

// Searches run on little stack, of which Eigen's products would take 128 KB.
#define EIGEN_STACK_ALLOCATION_LIMIT 4096  // NOLINT(cppcoreguidelines-macro-usage)
#include <Eigen/Dense>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

Eigen::Index eigen_index(std::size_t i) { return static_cast<Eigen::Index>(i); }

std::size_t size(const TimeBelief& belief) { return belief.log_seconds.size(); }

double covariance(const TimeBelief& belief, std::size_t x, std::size_t y) {
  return belief.covariance[x * size(belief) + y];
}

Matrix covariance_of(const TimeBelief& belief) {
  const Eigen::Index n = eigen_index(size(belief));
  return Eigen::Map<const Matrix>(belief.covariance.data(), n, n);  // symmetric
}

// Standard normal numbers. The distributions of the standard library differ from one to the next.
class Normals {
 public:
  double next() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  double uniform() { return (static_cast<double>(engine_() >> 11U) + 0.5) * 0x1p-53; }
  std::mt19937_64 engine_;  // NOLINT(cert-msc51-cpp): the same numbers each time
};

// Columns of times that may be true.
Matrix draws(const TimeBelief& belief, int count) {
  const Eigen::Index n = eigen_index(size(belief));
  // What was measured has no variance left. The symmetric root is the one that does not depend on how equal eigenvalues'
  // vectors are chosen, which differs from machine to machine.
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(covariance_of(belief));
  const Matrix& vectors = solver.eigenvectors();
  const Matrix root =
      vectors * solver.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() * vectors.transpose();
  Matrix normal(n, count);
  Normals normals;
  for (Eigen::Index column = 0; column < count; ++column) {
    for (Eigen::Index row = 0; row < n; ++row) normal(row, column) = normals.next();
  }
  const Vector mean = Eigen::Map<const Vector>(belief.log_seconds.data(), n);
  return (root * normal).colwise() + mean;
}

// Returns how the means follow from what was measured of `of`: mean + gain (measured - mean of `of`).
Matrix gain_of(const TimeBelief& belief, const std::vector<std::size_t>& of) {
  const Eigen::Index n = eigen_index(size(belief));
  const Eigen::Index m = eigen_index(of.size());
  Matrix among(m, m);
  Matrix with(n, m);
  for (std::size_t j = 0; j < of.size(); ++j) {
    for (std::size_t i = 0; i < of.size(); ++i)
      among(eigen_index(i), eigen_index(j)) = covariance(belief, of[i], of[j]);
    for (std::size_t i = 0; i < size(belief); ++i)
      with(eigen_index(i), eigen_index(j)) = covariance(belief, i, of[j]);
  }
  // Equal strategies have equal rows: the pseudo-inverse takes them as one.
  const Matrix inverse = among.completeOrthogonalDecomposition().pseudoInverse();
  return with * inverse;
}

}  // namespace

TimeBelief believed(std::span<const Candidate> candidates, const Spread& spread, const SharedErrors& errors) {
  double apart = errors.own * errors.own;
  for (const StrategyTrait& trait : strategy_traits) apart += std::pow(errors.*trait.deviation, 2);
  const double variance = std::max(std::pow(standard_deviation(spread), 2), apart);
  TimeBelief belief;
  for (const Candidate& x : candidates) {
    belief.log_seconds.push_back(std::log(x.iteration.count()) + spread.centre);
    for (const Candidate& y : candidates) {
      const double deviation = deviation_between(x.strategy, y.strategy, errors);
      belief.covariance.push_back(variance - deviation * deviation / 2);
    }
  }
  return belief;
}

TimeBelief given(const TimeBelief& belief, std::span<const Measurement> measurements) {
  if (measurements.empty()) return belief;
  std::map<std::size_t, std::vector<double>> logarithms;
  for (const Measurement& one : measurements) logarithms[one.of].push_back(std::log(one.time.count()));
  std::vector<std::size_t> of;
  Vector surprise(eigen_index(logarithms.size()));
  for (const auto& [place, values] : logarithms) {
    double sum = 0;
    for (const double value : values) sum += value;
    surprise(eigen_index(of.size())) = sum / static_cast<double>(values.size()) - belief.log_seconds[place];
    of.push_back(place);
  }
  const Matrix gain = gain_of(belief, of);
  const Matrix all = covariance_of(belief);
  Matrix with(all.rows(), eigen_index(of.size()));
  for (std::size_t j = 0; j < of.size(); ++j) with.col(eigen_index(j)) = all.col(eigen_index(of[j]));
  const Vector shift = gain * surprise;
  const Matrix left = all - gain * with.transpose();
  TimeBelief result;
  for (std::size_t x = 0; x < size(belief); ++x) {
    result.log_seconds.push_back(belief.log_seconds[x] + shift(eigen_index(x)));
    for (std::size_t y = 0; y < size(belief); ++y) {
      const double one = (left(eigen_index(x), eigen_index(y)) + left(eigen_index(y), eigen_index(x))) / 2;
      constexpr double rounding = 1e-12;
      result.covariance.push_back(x == y && one < rounding ? 0 : one);
    }
  }
  return result;
}

Seconds expected(const TimeBelief& belief, std::size_t of) {
  return Seconds(std::exp(belief.log_seconds[of]));
}

IterationInterval interval(const TimeBelief& belief, std::size_t of) {
  return iteration_interval(expected(belief, of), spread_of(std::sqrt(covariance(belief, of, of))));
}

double deviation_between(const TimeBelief& belief, std::size_t x, std::size_t y) {
  const double variance = covariance(belief, x, x) + covariance(belief, y, y) - 2 * covariance(belief, x, y);
  return std::sqrt(std::max(0.0, variance));
}

bool within_noise(double longer, double deviation) {
  return longer <= normal_quantile(interval_level) * deviation;
}

bool equal_within_noise(const TimeBelief& belief, std::size_t x, std::size_t y) {
  return within_noise(belief.log_seconds[x] - belief.log_seconds[y], deviation_between(belief, x, y));
}

std::vector<double> odds_of_fastest(const TimeBelief& belief, std::size_t count) {
  EXPECTS(count <= size(belief));
  constexpr int draw_count = 4096;
  std::vector<double> odds(count);
  if (odds.empty()) return odds;
  const Matrix times = draws(belief, draw_count);
  for (Eigen::Index column = 0; column < draw_count; ++column) {
    Eigen::Index fastest = 0;
    times.col(column).head(eigen_index(count)).minCoeff(&fastest);
    odds[static_cast<std::size_t>(fastest)] += 1.0 / draw_count;
  }
  return odds;
}

Trials most_telling(const TimeBelief& belief, std::size_t most) {
  constexpr int count = 1024;
  constexpr double least_gain = 1e-4;  // of an iteration; below it, the draws tell nothing
  Trials trials;
  if (size(belief) == 0) return trials;
  const Matrix times = draws(belief, count);
  const Vector mean = Eigen::Map<const Vector>(belief.log_seconds.data(), eigen_index(size(belief)));
  const Eigen::RowVectorXd least = times.colwise().minCoeff();
  const auto loss = [&](const std::vector<std::size_t>& of) {
    Matrix means = mean.replicate(1, count);
    if (!of.empty()) {
      Matrix surprise(eigen_index(of.size()), count);
      for (std::size_t j = 0; j < of.size(); ++j)
        surprise.row(eigen_index(j)) = times.row(eigen_index(of[j])).array() - mean(eigen_index(of[j]));
      means += gain_of(belief, of) * surprise;
    }
    double sum = 0;
    for (Eigen::Index column = 0; column < count; ++column) {
      Eigen::Index chosen = 0;
      means.col(column).minCoeff(&chosen);
      sum += times(chosen, column) - least(column);
    }
    return sum / count;
  };
  trials.loss_before = loss({});
  double before = trials.loss_before;
  if (before < least_gain) return trials;
  const auto known = [&](std::size_t i) { return covariance(belief, i, i) == 0; };
  bool any_known = false;
  for (std::size_t i = 0; i < size(belief); ++i) any_known = any_known || known(i);
  // What the errors of all share is told by the first run, and only then what tells them apart.
  if (most > 0 && !any_known) {
    Eigen::Index first = 0;
    mean.minCoeff(&first);
    trials.of.push_back(static_cast<std::size_t>(first));
    before = std::min(before, loss(trials.of));
    trials.loss_after.push_back(before);
  }
  while (trials.of.size() < most) {
    std::optional<std::size_t> next;
    double best_worth = 0;
    double after = before;
    for (std::size_t i = 0; i < size(belief); ++i) {
      if (known(i) || std::find(trials.of.begin(), trials.of.end(), i) != trials.of.end()) continue;
      std::vector<std::size_t> of = trials.of;
      of.push_back(i);
      const double left = loss(of);
      const double worth = (before - left) / expected(belief, i).count();
      if (before - left < least_gain || worth <= best_worth) continue;
      next = i;
      best_worth = worth;
      after = left;
    }
    if (!next) break;
    trials.of.push_back(*next);
    trials.loss_after.push_back(after);
    before = after;
  }
  return trials;
}

}  // namespace headroom
