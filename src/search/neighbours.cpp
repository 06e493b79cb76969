#include "headroom/search/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "headroom/search/evaluator.hpp"

namespace headroom {
namespace {

constexpr std::array sizes{&Strategy::tensor_parallel, &Strategy::pipeline_parallel,
                           &Strategy::virtual_pipeline, &Strategy::micro_batch};

// From the least replayed to the most; part of the way where only some layers or microbatches are.
double replayed(const Recomputation& recompute) {
  const bool part = recompute.layers > 0 || recompute.window;
  switch (recompute.policy) {
    case RecomputePolicy::none: return 0;
    case RecomputePolicy::ops:
    case RecomputePolicy::selective: return part ? 0.5 : 1;
    case RecomputePolicy::full: return part ? 1.5 : 2;
  }
  return 0;
}

}  // namespace

double distance(const Strategy& x, const Strategy& y) {
  double sum = std::abs(replayed(x.recompute) - replayed(y.recompute));
  for (const auto size : sizes) {
    sum += std::abs(std::log2(static_cast<double>(x.*size) / static_cast<double>(y.*size)));
  }
  sum += x.sequence_parallel != y.sequence_parallel ? 1 : 0;
  sum += x.distributed_optimizer != y.distributed_optimizer ? 1 : 0;
  return sum;
}

std::vector<Strategy> nearest_that_fit(const Request& base, const Space& space, const Strategy& strategy,
                                       std::size_t most) {
  struct Neighbour {
    double distance;
    Strategy strategy;
  };
  std::map<std::array<std::int64_t, sizes.size()>, Neighbour> nearest;
  Evaluator evaluator(base);
  visit_layouts(
      base, space,
      [&](const Strategy& layout) {
        evaluator.set_layout(layout);
        std::array<std::int64_t, sizes.size()> key{};
        for (std::size_t i = 0; i < sizes.size(); ++i) key.at(i) = layout.*sizes.at(i);
        Strategy candidate = layout;
        for (const Recomputation& recompute : recomputations(base, space, layout)) {
          candidate.recompute = recompute;
          for (const bool sharded : choices(space.distributed_optimizer, layout.data_parallel)) {
            candidate.distributed_optimizer = sharded;
            const double far = distance(strategy, candidate);
            const auto found = nearest.find(key);
            if (found != nearest.end() && found->second.distance <= far) continue;
            if (evaluator.peak(candidate).bytes > base.system.memory) continue;
            nearest.insert_or_assign(key, Neighbour{far, candidate});
          }
        }
        return true;
      },
      [](const std::string&) {});
  std::vector<Neighbour> neighbours;
  neighbours.reserve(nearest.size());
  for (auto& [key, neighbour] : nearest) neighbours.push_back(std::move(neighbour));
  std::stable_sort(neighbours.begin(), neighbours.end(),
                   [](const Neighbour& x, const Neighbour& y) { return x.distance < y.distance; });
  std::vector<Strategy> result;
  for (std::size_t i = 0; i < std::min(most, neighbours.size()); ++i) {
    result.push_back(std::move(neighbours[i].strategy));
  }
  return result;
}

}  // namespace headroom
