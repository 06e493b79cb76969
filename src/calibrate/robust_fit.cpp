#include "headroom/calibrate/robust_fit.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

using Vector = Eigen::VectorXd;
using Matrix = Eigen::MatrixXd;

constexpr int most_iterations = 200;
constexpr double difference = 1e-3;  // of a logarithm, for derivatives: wide enough to see past single waves
constexpr double least_progress = 1e-7;  // of the cost, in a step
constexpr double most_damping = 1e9;
constexpr double free_of_bound = 1e-12;

class Objective {
 public:
  Objective(const std::vector<Parameter>& parameters, std::size_t count, const Residuals& residuals,
            double scale)
      : residuals_(residuals), count_(static_cast<Eigen::Index>(count)), scale_(scale) {
    const auto size = static_cast<Eigen::Index>(parameters.size());
    least = Vector(size);
    most = Vector(size);
    for (Eigen::Index i = 0; i < size; ++i) {
      const Parameter& parameter = parameters[static_cast<std::size_t>(i)];
      least[i] = std::log(parameter.least);
      most[i] = std::log(parameter.most);
    }
  }

  [[nodiscard]] Vector residuals(const Vector& x) const {
    const Vector values = x.array().exp();
    Vector result(count_);
    residuals_({values.data(), static_cast<std::size_t>(values.size())},
               {result.data(), static_cast<std::size_t>(result.size())});
    return result;
  }

  [[nodiscard]] double cost(const Vector& r) const {
    return ((1 + (r / scale_).array().square()).sqrt() - 1).sum() * 2 * scale_ * scale_;
  }
  // Returns the weights of the squares that have the same gradient as the cost.
  [[nodiscard]] Vector weights(const Vector& r) const { return (1 + (r / scale_).array().square()).rsqrt(); }

  [[nodiscard]] Matrix jacobian(const Vector& x, const Vector& r) const {
    Matrix result(r.size(), x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const double step = x[i] + difference <= most[i] ? difference : -difference;
      Vector moved = x;
      moved[i] += step;
      result.col(i) = (residuals(moved) - r) / step;
    }
    return result;
  }

  Vector least;
  Vector most;

 private:
  const Residuals& residuals_;
  Eigen::Index count_;
  double scale_;
};

// Returns the damped Gauss-Newton step. Parameters at a bound that would go beyond it are held.
Vector step_of(const Objective& objective, const Vector& x, const Matrix& normal, const Vector& gradient,
               double damping) {
  Matrix system = normal;
  Vector descent = -gradient;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const bool held = (x[i] <= objective.least[i] + free_of_bound && descent[i] < 0) ||
                      (x[i] >= objective.most[i] - free_of_bound && descent[i] > 0);
    if (held) {
      system.row(i).setZero();
      system.col(i).setZero();
      descent[i] = 0;
    }
    // A parameter without influence stays where it is.
    system(i, i) = held ? 1 : system(i, i) * (1 + damping) + 1e-12;
  }
  return system.ldlt().solve(descent);
}

}  // namespace

RobustFit fit_robustly(const std::vector<Parameter>& parameters, std::size_t residual_count,
                       const Residuals& residuals, double scale) {
  EXPECTS(!parameters.empty() && residual_count >= parameters.size() && scale > 0);
  const Objective objective(parameters, residual_count, residuals, scale);
  Vector x(objective.least.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(i)];
    EXPECTS(0 < parameter.least && parameter.least <= parameter.start && parameter.start <= parameter.most);
    x[i] = std::log(parameter.start);
  }

  RobustFit fit;
  Vector r = objective.residuals(x);
  fit.cost = objective.cost(r);
  double damping = 1e-2;
  while (fit.iterations < most_iterations && !fit.converged) {
    ++fit.iterations;
    const Matrix jacobian = objective.jacobian(x, r);
    const Vector weights = objective.weights(r);
    const Matrix normal = jacobian.transpose() * weights.asDiagonal() * jacobian;
    const Vector gradient = jacobian.transpose() * weights.cwiseProduct(r);
    for (bool better = false; !better; damping *= better ? 0.2 : 4) {
      const Vector step = step_of(objective, x, normal, gradient, damping);
      const Vector next = (x + step).cwiseMin(objective.most).cwiseMax(objective.least);
      const Vector next_residuals = objective.residuals(next);
      const double next_cost = objective.cost(next_residuals);
      better = next_cost < fit.cost;
      if (better) {
        fit.converged = fit.cost - next_cost < least_progress * fit.cost;
        x = next;
        r = next_residuals;
        fit.cost = next_cost;
      } else if (damping > most_damping) {
        fit.converged = true;  // no step downhill is left
        break;
      }
    }
  }
  const Vector values = x.array().exp();
  fit.values.assign(values.begin(), values.end());
  return fit;
}

}  // namespace headroom
