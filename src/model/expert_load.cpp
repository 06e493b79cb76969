#include "headroom/model/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

// Returns the loads of the experts, the most wanted first.
std::vector<double> loads_of(std::int64_t experts) {
  std::vector<double> loads;
  loads.reserve(index(experts));
  for (std::int64_t i = 1; i <= experts; ++i) loads.push_back(std::pow(real(i), -expert_power_law));
  return loads;
}

// Random numbers that are the same on every machine [Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014].
class SplitMix {
 public:
  std::uint64_t below(std::uint64_t bound) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = (state_ ^ (state_ >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return (mixed ^ (mixed >> 31U)) % bound;
  }

 private:
  std::uint64_t state_ = 0;
};

// Returns the median load of the busiest rank over placements that are drawn uniformly.
double median_fullest(std::vector<double> loads, std::size_t on_rank) {
  constexpr std::size_t placements = 31;
  SplitMix random;
  std::array<double, placements> fullest{};
  for (double& most : fullest) {
    for (std::size_t i = loads.size(); i > 1; --i) std::swap(loads[i - 1], loads[random.below(i)]);
    for (std::size_t first = 0; first < loads.size(); first += on_rank) {
      const auto begin = loads.begin() + static_cast<std::ptrdiff_t>(first);
      most = std::max(most, std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(on_rank), 0.0));
    }
  }
  std::nth_element(fullest.begin(), fullest.begin() + placements / 2, fullest.end());
  return fullest[placements / 2];
}

// Returns the largest possible load of a rank. At most, it receives every token once for each expert that it
// holds, up to the experts of a token.
double most_load(const Experts& experts, std::int64_t ranks) {
  const double reached = real(std::max<std::int64_t>(std::min(experts.per_token, experts.count / ranks), 1));
  return std::max(reached * real(ranks) / real(experts.per_token), 1.0);
}

}  // namespace

double fullest_rank(ExpertLoad load, std::int64_t experts, std::int64_t ranks) {
  EXPECTS(ranks >= 1 && experts >= ranks && experts % ranks == 0);
  if (load == ExpertLoad::balanced || ranks == 1) return 1;
  const std::vector<double> loads = loads_of(experts);
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / real(ranks);
  const std::int64_t on_rank = experts / ranks;
  const double fullest = load == ExpertLoad::worst
                             ? std::accumulate(loads.begin(), loads.begin() + on_rank, 0.0)
                             : median_fullest(loads, index(on_rank));
  return std::max(fullest / mean, 1.0);
}

double fullest_rank(const MoeImbalance& imbalance, const Transformer& model, std::int64_t ranks) {
  double most = 0;
  const auto consider = [&](const Architecture& architecture) {
    if (!architecture.experts) return;
    const Experts& experts = *architecture.experts;
    const bool divided = experts.count >= ranks && experts.count % ranks == 0;
    const bool known = imbalance.load != ExpertLoad::balanced && divided;
    const double load = known ? fullest_rank(imbalance.load, experts.count, ranks)
                              : std::min(imbalance.factor, most_load(experts, ranks));
    most = std::max(most, std::min(load, experts.capacity_factor.value_or(load)));
  };
  if (model.layer_kinds.empty()) consider(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) consider(kind.architecture);
  return most > 0 ? most : imbalance.factor;
}

double capacity_factor(const Transformer& model) {
  double most = 0;
  const auto consider = [&](const Architecture& architecture) {
    if (architecture.experts) most = std::max(most, architecture.experts->capacity_factor.value_or(0));
  };
  if (model.layer_kinds.empty()) consider(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) consider(kind.architecture);
  return most > 0 ? most : 1;
}

}  // namespace headroom
