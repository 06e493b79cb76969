#include "headroom/search/layers_by_memory.hpp"

#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "headroom/core/counts.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/schedule/shape.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {
namespace {

// Returns the largest number of layers, up to `high`, with which a rank fits, assuming that it fits with
// fewer too; 0 if not even one fits. Starts close below `high`, where the result is expected.
template <class Fits>
std::int64_t most_layers_held(std::int64_t high, Fits fits) {
  std::int64_t bad = high + 1;
  std::int64_t good = high;
  for (std::int64_t width = 1; good > 0 && !fits(good); width *= 2) {
    bad = good;
    good = std::max<std::int64_t>(0, good - width);
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

// Returns the most layers that each rank holds, where fits(rank, layers) says what fits; nothing if the ranks
// do not hold the model. Except for the last rank, which has the output layer, earlier ranks have more passes
// in flight, and the first has the embedding. So no rank holds more layers than the one after it.
template <class Fits>
std::optional<std::vector<std::int64_t>> layers_held(const std::vector<std::int64_t>& balanced,
                                                     std::int64_t layers, Fits fits) {
  // Most strategies are far too large, which this shows at once.
  const std::int64_t last = std::ssize(balanced) - 1;
  const bool end_full = !fits(last, balanced[index(last)]);
  const bool others_full = !fits(last - 1, balanced[index(last - 1)]);
  if (end_full && others_full &&
      last * (balanced[index(last - 1)] - 1) + balanced[index(last)] - 1 < layers) {
    return std::nullopt;
  }
  std::vector<std::int64_t> most(balanced.size());
  std::int64_t high = layers - last;
  std::int64_t held = most[index(last)] = most_layers_held(
      end_full ? balanced[index(last)] - 1 : high, [&](std::int64_t some) { return fits(last, some); });
  if (held == 0) return std::nullopt;
  if (others_full) high = balanced[index(last - 1)] - 1;
  for (std::int64_t rank = last - 1; rank >= 0; --rank) {
    high = most[index(rank)] = most_layers_held(high, [&](std::int64_t some) { return fits(rank, some); });
    held += high;
    if (high == 0 || held + rank * high < layers) return std::nullopt;
  }
  return most;
}

// The makespan also depends on how a pipeline fills and drains. On few ranks, layers are moved one at a time
// while that makes it shorter. On more ranks the busiest rank decides almost alone.
constexpr std::size_t most_ranks_refined = 4;

template <class Busy>
void refine(const ScheduleShape& shape, Busy busy, std::span<const std::int64_t> most,
            std::vector<std::int64_t>& placed) {
  std::vector<ChunkSpans> spans;
  for (std::size_t rank = 0; rank < placed.size(); ++rank) spans.push_back(busy(rank, placed[rank]));
  Seconds shortest = makespan(shape, spans);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t from = 0; from < placed.size(); ++from) {
      for (std::size_t to = 0; to < placed.size(); ++to) {
        if (from == to || placed[from] == 1 || placed[to] == most[to]) continue;
        const ChunkSpans of_from = std::exchange(spans[from], busy(from, placed[from] - 1));
        const ChunkSpans of_to = std::exchange(spans[to], busy(to, placed[to] + 1));
        const Seconds time = makespan(shape, spans);
        if (time < shortest) {
          shortest = time;
          --placed[from];
          ++placed[to];
          better = true;
        } else {
          spans[from] = of_from;
          spans[to] = of_to;
        }
      }
    }
  }
}

// Places layers so that the busiest rank is least busy, with at most so many layers on each rank. Each layer
// goes to the rank where it adds least to the maximum, and to the later rank on a tie.
std::vector<std::int64_t> placed_by_time(const Layout& layout, const Strategy& strategy,
                                         std::span<const std::int64_t> most) {
  std::vector<StagePlace> places = stage_places(layout.layers().layers(), strategy);
  const ModelCost& cost = layout.layers().cost(strategy.recompute);
  const auto busy = [&](std::size_t rank, std::int64_t layers) {
    StagePlace& place = places[rank];
    LayerRun& run = place.runs.front();
    place.layers = run.count = place.of_kind[run.kind] = layers;
    const PassTimes times = layout.times_of(stage_cost(cost, place, strategy.recompute));
    return chunk_spans(layout.shape(), times, {}, 0, layout.overlap_loss());
  };
  const auto both = [](const ChunkSpans& spans) { return spans.forward + spans.backward; };
  std::int64_t left = -std::ssize(most);
  for (const StagePlace& place : places) left += place.layers;
  std::vector<std::int64_t> placed(most.size(), 1);
  std::vector<Seconds> next;  // how busy a layer more makes a rank
  for (std::size_t rank = 0; rank < most.size(); ++rank) next.push_back(both(busy(rank, 2)));
  for (; left > 0; --left) {
    std::optional<std::size_t> least;
    for (std::size_t rank = 0; rank < most.size(); ++rank) {
      if (placed[rank] < most[rank] && (!least || next[rank] <= next[*least])) least = rank;
    }
    next[*least] = both(busy(*least, ++placed[*least] + 1));
  }
  if (most.size() <= most_ranks_refined) refine(layout.shape(), busy, most, placed);
  return placed;
}

}  // namespace

LayersByMemory::LayersByMemory(const Request& base, const Space& space) : base_(base) {
  possible_ = space.layouts == Layouts::any && base.model.layer_kinds.size() <= 1 &&
              !has_bf16_layers(base.strategy.precision_scope);
  if (possible_) ends_ = end_loads(base.model);
}

bool LayersByMemory::applies(const Strategy& layout) {
  const std::int64_t p = layout.pipeline_parallel;
  if (!possible_ || p == 1 || layout.virtual_pipeline > 1 || has_weight_passes(layout.schedule)) return false;
  const auto [entry, added] = balanced_.try_emplace(p);
  if (added) entry->second = balanced_layers(base_.model.layers, p, ends_);
  return layers_by_stage(base_.model, layout) == entry->second;
}

std::optional<Strategy> LayersByMemory::fitting(const Layout& layout, const Strategy& strategy) const {
  const auto fits = [&](std::int64_t rank, std::int64_t held) {
    return verdict_of(base_, layout.rank_total(strategy, rank, held)) == Verdict::fits;
  };
  const std::int64_t layers = base_.model.layers;
  const std::optional<std::vector<std::int64_t>> most =
      layers_held(balanced_.at(strategy.pipeline_parallel), layers, fits);
  if (!most) return std::nullopt;
  Strategy result = strategy;
  result.stage_layers = base_.system.performance ? placed_by_time(layout, strategy, *most)
                                                 : *balanced_layers(layers, ends_, *most);
  return result;
}

bool LayersByMemory::may_fit(const Layout& layout, const Strategy& strategy) const {
  const auto fits = [&](std::int64_t rank, std::int64_t held) {
    return verdict_of(base_, layout.least_rank_total(strategy, rank, held)) == Verdict::fits;
  };
  return layers_held(balanced_.at(strategy.pipeline_parallel), base_.model.layers, fits).has_value();
}

std::vector<LayersByMemory::Placed> LayersByMemory::fitting(const Layout& layout,
                                                            std::span<const Strategy> strategies) const {
  std::vector<Placed> placed;
  if (strategies.empty() || !may_fit(layout, strategies.front())) return placed;
  bool hopeless = false;  // full recomputation does not fit, so less does not
  for (std::size_t i = strategies.size(); i-- > 0;) {
    const Strategy& strategy = strategies[i];
    const bool full = strategy.recompute.policy == RecomputePolicy::full;
    if (full && hopeless) continue;
    if (auto other = fitting(layout, strategy)) {
      placed.push_back({.of = i, .strategy = std::move(*other)});
    } else {
      hopeless = hopeless || full;
    }
  }
  return placed;
}

}  // namespace headroom
