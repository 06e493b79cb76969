#include "headroom/search/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/composer.hpp"

namespace headroom {
namespace {

constexpr std::int64_t count_of_sizes =
    std::count_if(strategy_fields.begin(), strategy_fields.end(),
                  [](const StrategyField& field) { return field.distance == FieldDistance::doublings; });

using Sizes = std::array<std::int64_t, static_cast<std::size_t>(count_of_sizes)>;

// Returns the sizes whose doublings count.
Sizes sizes_of(const Strategy& strategy) {
  Sizes sizes{};
  auto size = sizes.begin();
  for (const StrategyField& field : strategy_fields) {
    if (field.distance != FieldDistance::doublings) continue;
    *size++ = std::get<Member<std::int64_t>>(field.member).in(strategy, {});
  }
  return sizes;
}

// Returns a measure from the least recomputed to the most; a part of a step if only some layers or
// microbatches recompute.
double recomputed(const Recomputation& recompute) {
  const bool part = recompute.layers > 0 || recompute.window;
  switch (recompute.policy) {
    case RecomputePolicy::none: return 0;
    case RecomputePolicy::ops:
    case RecomputePolicy::selective_op:
    case RecomputePolicy::selective: return part ? 0.5 : 1;
    case RecomputePolicy::full: return part ? 1.5 : 2;
  }
  return 0;
}

bool differs(const StrategyField& field, const Strategy& x, const Strategy& y) {
  const auto compare = [&](const auto& member) { return member.in(x, {}) != member.in(y, {}); };
  return std::visit(compare, field.member);
}

// Counts the fields in which two strategies differ, including those that distance() ignores: the schedule,
// layers recomputed, ...
std::int64_t differing_fields(const Strategy& x, const Strategy& y) {
  return std::count_if(strategy_fields.begin(), strategy_fields.end(),
                       [&](const StrategyField& field) { return differs(field, x, y); });
}

// Visits all strategies of a space, entering each layout first.
template <class EnterLayout, class Visit>
void visit_all(const Request& base, const Space& space, const EnterLayout& enter, const Visit& visit) {
  visit_layouts(
      base, space,
      [&](const Strategy& layout) {
        for (const ShardingChoice& sharding : sharding_choices(base, space, layout)) {
          Strategy candidate = with_sharding(layout, sharding);
          enter(candidate);
          for (const Recomputation& recompute : recomputations(base, space, layout)) {
            candidate.recompute = recompute;
            if (may_recompute(base, candidate)) visit(candidate);
          }
        }
        return true;
      },
      [](const Problem&) {});
}

}  // namespace

double distance(const Strategy& x, const Strategy& y) {
  double sum = std::abs(recomputed(x.recompute) - recomputed(y.recompute));
  const Sizes of_x = sizes_of(x);
  const Sizes of_y = sizes_of(y);
  for (std::size_t i = 0; i < of_x.size(); ++i) {
    sum += std::abs(std::log2(static_cast<double>(of_x.at(i)) / static_cast<double>(of_y.at(i))));
  }
  for (const StrategyField& field : strategy_fields) {
    if (field.distance == FieldDistance::differs && differs(field, x, y)) sum += 1;
  }
  return sum;
}

std::vector<Strategy> nearest_that_fit(const Request& base, const Space& space, const Strategy& strategy,
                                       std::size_t most) {
  struct Neighbour {
    double distance;
    Strategy strategy;
  };
  std::map<Sizes, Neighbour> nearest;
  Composer composer(base);
  std::optional<Layout> placed;
  const auto consider = [&](const Strategy& candidate) {
    const Sizes key = sizes_of(candidate);
    const double far = distance(strategy, candidate);
    const auto found = nearest.find(key);
    if (found != nearest.end() && found->second.distance <= far) return;
    if (placed->peak(candidate).bytes > base.system.memory) return;
    nearest.insert_or_assign(key, Neighbour{far, candidate});
  };
  visit_all(
      base, space, [&](const Strategy& layout) { placed = composer.layout(layout); }, consider);
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

std::optional<Strategy> nearest_in(const Request& base, const Space& space, const Strategy& strategy) {
  std::optional<Strategy> nearest;
  std::pair<double, std::int64_t> least;
  const auto consider = [&](const Strategy& candidate) {
    const std::pair far{distance(strategy, candidate), differing_fields(strategy, candidate)};
    if (nearest && least <= far) return;
    nearest = candidate;
    least = far;
  };
  visit_all(
      base, space, [](const Strategy& /*layout*/) {}, consider);
  return nearest;
}

}  // namespace headroom
