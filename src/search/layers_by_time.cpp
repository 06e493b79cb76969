#include "headroom/search/layers_by_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/schedule/makespan.hpp"
#include "headroom/search/lightest_stages.hpp"
#include "headroom/time/stage_time.hpp"

namespace headroom {
namespace {

using StageLayers = std::vector<std::int64_t>;  // by virtual stage, in the order of the model

// Prices any layout of a strategy's layers, each virtual stage and each rank once.
class PricedLayouts {
 public:
  PricedLayouts(const Layout& layout, const Strategy& strategy)
      : layout_(layout),
        strategy_(strategy),
        layers_(layout.layers().layers()),
        cost_(layout.layers().cost(strategy.recompute)),
        shape_(layout.shape()),
        links_(layout.links().begin(), layout.links().end()) {
    for (const LayerRun& run : layers_.runs) {
      if (layers_.kinds[run.kind].position == KindPosition::layer)
        kinds_.insert(kinds_.end(), index(run.count), run.kind);
    }
    const std::vector<StagePlace> places = stage_places(layers_, strategy);
    for (const auto& [end, place] :
         {std::pair{&front_, &places.front()}, std::pair{&back_, &places.back()}}) {
      *end = *place;
      end->layers = 0;
      for (const LayerRun& run : place->runs) end->of_kind[run.kind] = 0;
      end->runs.clear();
    }
    for (std::vector<std::vector<std::optional<PassTimes>>>& times : times_) times.resize(kinds_.size() + 1);
  }

  [[nodiscard]] std::int64_t layers() const { return std::ssize(kinds_); }
  [[nodiscard]] std::int64_t stages() const { return stages_of(shape_); }
  [[nodiscard]] const ScheduleShape& shape() const { return shape_; }

  // Returns the fewest layers that a virtual stage may have.
  [[nodiscard]] std::int64_t least_layers(std::int64_t stage) const {
    return strategy_.virtual_pipeline > 1 && (stage == 0 || stage == stages() - 1) ? 0 : 1;
  }

  // Returns the time of a microbatch in a virtual stage with the layers from `first` up to `end`.
  ChunkSpans spans(std::int64_t stage, std::int64_t first, std::int64_t end) {
    return chunk_spans(shape_, times(stage, first, end), links_, stage, layout_.overlap_loss());
  }

  std::vector<ChunkSpans> spans(const StageLayers& layout) {
    std::vector<ChunkSpans> result;
    std::int64_t first = 0;
    for (std::int64_t stage = 0; stage < stages(); ++stage) {
      const std::int64_t end = first + layout[index(stage)];
      result.push_back(spans(stage, first, end));
      first = end;
    }
    return result;
  }

  // Returns the makespans of layouts with these spans.
  std::vector<Seconds> makespans(std::span<const StageLayers> layouts,
                                 std::span<const std::vector<ChunkSpans>> spans) {
    std::vector<Seconds> longest(layouts.size());
    if (!needs_replay(shape_)) {
      const std::vector<std::span<const ChunkSpans>> pipelines(spans.begin(), spans.end());
      headroom::makespans(shape_, pipelines, longest);
      return longest;
    }
    std::transform(layouts.begin(), layouts.end(), longest.begin(), [&](const StageLayers& layout) {
      ScheduleTimes passes{.links = links_, .overlap_loss = layout_.overlap_loss()};
      std::int64_t first = 0;
      for (std::int64_t stage = 0; stage < stages(); ++stage) {
        const std::int64_t end = first + layout[index(stage)];
        passes.stages.push_back(times(stage, first, end));
        first = end;
      }
      return replay_periods(layout_.order(), passes).makespan;
    });
    return longest;
  }

  Seconds makespan(const StageLayers& layout) {
    const std::vector<ChunkSpans> of_layout = spans(layout);
    return makespans(std::span(&layout, 1), std::span(&of_layout, 1)).front();
  }

  // Returns what a rank holds at its peak.
  Bytes held(std::int64_t rank, const StageLayers& layout) {
    std::vector<StagePlace> places;
    std::vector<std::int64_t> key{rank};
    for (std::int64_t chunk = 0; chunk < shape_.chunks; ++chunk) {
      const std::int64_t stage = stage_of(shape_, rank, chunk);
      const std::int64_t first = std::accumulate(layout.begin(), layout.begin() + stage, std::int64_t{0});
      places.push_back(place(stage, first, first + layout[index(stage)]));
      for (const LayerRun& run : places.back().runs)
        key.insert(key.end(), {static_cast<std::int64_t>(run.kind), run.count});
      key.push_back(-1);
    }
    const auto [entry, added] = held_.try_emplace(std::move(key));
    if (added) entry->second = layout_.rank_total(strategy_, rank, places);
    return entry->second;
  }

 private:
  [[nodiscard]] StagePlace place(std::int64_t stage, std::int64_t first, std::int64_t end) const {
    StagePlace place = stage == stages() - 1 ? back_ : front_;
    if (stage > 0 && stage < stages() - 1) {
      place.first = false;
      for (std::int64_t& count : place.of_kind) count = 0;
      place.predictors.clear();
    }
    place.layers = end - first;
    for (std::int64_t layer = first; layer < end; ++layer) {
      const std::size_t kind = kinds_[index(layer)];
      ++place.of_kind[kind];
      if (place.runs.empty() || place.runs.back().kind != kind) place.runs.push_back({kind, 0});
      ++place.runs.back().count;
    }
    return place;
  }

  const PassTimes& times(std::int64_t stage, std::int64_t first, std::int64_t end) {
    auto& from_first = times_.at(stage == 0 ? 0 : stage < stages() - 1 ? 1 : 2)[index(first)];
    if (from_first.size() <= index(end - first)) from_first.resize(index(end - first) + 1);
    std::optional<PassTimes>& known = from_first[index(end - first)];
    if (!known) known = layout_.times_of(stage_cost(cost_, place(stage, first, end), strategy_.recompute));
    return *known;
  }

  const Layout& layout_;
  const Strategy& strategy_;
  const ModelLayers& layers_;
  const ModelCost& cost_;
  const ScheduleShape shape_;
  const std::vector<Seconds> links_;
  std::vector<std::size_t> kinds_;  // of each layer
  StagePlace front_;                // without layers
  StagePlace back_;
  // Of the first, inner and last stages, by first layer and number of layers.
  std::array<std::vector<std::vector<std::optional<PassTimes>>>, 3> times_;
  std::map<std::vector<std::int64_t>, Bytes> held_;  // by rank and runs of its stages
};

// What is tried. Layers of few stages are a large part of a stage, so more is tried there, where it takes little
// time.
struct Effort {
  std::int64_t cuts = 1;
  std::size_t starts = 1;  // fastest of the cuts
  std::int64_t moved = 1;  // layers at once, at most
};

Effort effort_for(std::int64_t stages) {
  constexpr std::int64_t few_stages = 8;
  return stages <= few_stages ? Effort{.cuts = 8, .starts = 4, .moved = 3} : Effort{};
}

// Calls visit(layout) for each layout that moves a few layers from one stage to another.
template <class Visit>
void visit_moves(PricedLayouts& priced, const StageLayers& layout, Visit visit) {
  const std::int64_t most_moved = effort_for(priced.stages()).moved;
  StageLayers other = layout;
  for (std::int64_t from = 0; from < priced.stages(); ++from) {
    for (std::int64_t to = 0; to < priced.stages(); ++to) {
      const std::int64_t spare = layout[index(from)] - priced.least_layers(from);
      for (std::int64_t moved = 1; to != from && moved <= std::min(spare, most_moved); ++moved) {
        other[index(from)] = layout[index(from)] - moved;
        other[index(to)] = layout[index(to)] + moved;
        visit(std::as_const(other));
      }
      other[index(from)] = layout[index(from)];
      other[index(to)] = layout[index(to)];
    }
  }
}

class FasterLayout {
 public:
  FasterLayout(const Request& base, const Layout& layout, const Strategy& strategy, Verdict verdict)
      : base_(base), verdict_(verdict), priced_(layout, strategy) {}

  // Returns the fastest layout found that has the verdict.
  std::optional<StageLayers> fastest(const StageLayers& own) {
    std::optional<StageLayers> best;
    std::optional<Seconds> least;
    for (StageLayers& start : starts(own)) {
      if (!relieve(start)) continue;
      const Seconds time = shorten(start);
      if (least && *least <= time) continue;
      least = time;
      best = std::move(start);
    }
    return best;
  }

 private:
  // Returns the strategy's own layout, and the fastest of some cuts. With several virtual stages a rank, a rank
  // may be slower than the heaviest stages of the chunks tell, so cuts with ever higher prices on slow ranks
  // follow.
  std::vector<StageLayers> starts(const StageLayers& own) {
    std::vector<StageLayers> cuts;
    std::vector<double> prices(index(priced_.shape().ranks), 1);
    const Effort effort = effort_for(priced_.stages());
    for (std::int64_t i = 0; i < (priced_.shape().chunks > 1 ? effort.cuts : 1); ++i) {
      std::optional<StageLayers> cut = lightest(prices);
      if (!cut) break;
      const std::vector<ChunkSpans> spans = priced_.spans(*cut);
      std::vector<Seconds> busy(prices.size());
      for (std::size_t stage = 0; stage < spans.size(); ++stage) {
        busy[index(rank_of(priced_.shape(), {0, static_cast<std::int64_t>(stage)}))] +=
            spans[stage].forward + spans[stage].backward;
      }
      const Seconds mean =
          (1 / real(std::ssize(busy))) * std::accumulate(busy.begin(), busy.end(), Seconds(0));
      for (std::size_t rank = 0; rank < prices.size(); ++rank) prices[rank] *= std::sqrt(busy[rank] / mean);
      if (std::find(cuts.begin(), cuts.end(), *cut) == cuts.end()) cuts.push_back(std::move(*cut));
    }
    std::vector<std::pair<Seconds, StageLayers>> timed;
    timed.reserve(cuts.size());
    for (StageLayers& cut : cuts) timed.emplace_back(priced_.makespan(cut), std::move(cut));
    std::sort(timed.begin(), timed.end());
    if (timed.size() > effort.starts) timed.resize(effort.starts);
    std::vector<StageLayers> result{own};
    for (auto& [time, cut] : timed) result.push_back(std::move(cut));
    return result;
  }

  // Returns the cut of lightest_stages() by time, each rank's multiplied by its price.
  std::optional<StageLayers> lightest(std::span<const double> prices) {
    return lightest_stages(
        priced_.layers(), priced_.shape().ranks, priced_.stages() / priced_.shape().ranks,
        [&](std::int64_t stage, std::int64_t first, std::int64_t end) -> std::optional<double> {
          if (end - first < priced_.least_layers(stage)) return std::nullopt;
          if (priced_.shape().chunks == 1) {
            StageLayers alone(index(priced_.stages()), 0);
            alone.front() = stage > 0 ? first : 0;
            alone[index(stage)] = end - first;
            if (verdict_of(base_, priced_.held(stage, alone)) > verdict_) return std::nullopt;
          }
          const ChunkSpans spans = priced_.spans(stage, first, end);
          return prices[index(rank_of(priced_.shape(), {0, stage}))] *
                 (spans.forward + spans.backward).count();
        });
  }

  // Returns the bytes that ranks lack together.
  Bytes lacking(const StageLayers& layout) {
    const Bytes most = (verdict_ == Verdict::fits ? 1 - base_.margin : 1) * base_.system.memory;
    Bytes sum;
    for (std::int64_t rank = 0; rank < priced_.shape().ranks; ++rank) {
      const Bytes held = priced_.held(rank, layout);
      if (verdict_of(base_, held) > verdict_) sum += std::max(held - most, Bytes(1));
    }
    return sum;
  }

  // Moves layers off ranks that are too full. Returns whether all have the verdict then.
  bool relieve(StageLayers& layout) {
    for (Bytes least = lacking(layout); least > Bytes(0);) {
      StageLayers best;
      visit_moves(priced_, layout, [&](const StageLayers& other) {
        const Bytes lacks = lacking(other);
        if (lacks >= least) return;
        least = lacks;
        best = other;
      });
      if (best.empty()) return false;
      layout = std::move(best);
    }
    return true;
  }

  // Moves the layer whose move makes the pipeline shortest, until none does. Returns the makespan.
  Seconds shorten(StageLayers& layout) {
    constexpr double worth_a_move = 0.9995;  // many moves of less would make an odd layout of a regular one
    constexpr std::size_t most_checked = 32;
    Seconds now = priced_.makespan(layout);
    while (true) {
      const Seconds most = worth_a_move * now;
      std::vector<StageLayers> moves;
      std::vector<std::vector<ChunkSpans>> spans;
      visit_moves(priced_, layout, [&](const StageLayers& other) {
        std::vector<ChunkSpans> of_other = priced_.spans(other);
        if (least_makespan(priced_.shape(), of_other) >= most) return;
        moves.push_back(other);
        spans.push_back(std::move(of_other));
      });
      const std::vector<Seconds> times = priced_.makespans(moves, spans);
      std::vector<std::size_t> order(moves.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](auto x, auto y) { return times[x] < times[y]; });
      if (order.size() > most_checked) order.resize(most_checked);
      const auto better = std::find_if(order.begin(), order.end(), [&](std::size_t move) {
        return times[move] >= most || lacking(moves[move]) == Bytes(0);
      });
      if (better == order.end() || times[*better] >= most) return now;
      now = times[*better];
      layout = moves[*better];
    }
  }

  const Request& base_;
  Verdict verdict_;
  PricedLayouts priced_;
};

}  // namespace

std::optional<Strategy> with_layers_by_time(const Request& base, Composer& composer, const Strategy& strategy,
                                            Verdict verdict) {
  if (strategy.pipeline_parallel == 1 || model_copies(strategy.schedule) > 1 || strategy.recompute.window)
    return std::nullopt;
  const StageLayers own = layers_by_stage(base.model, strategy);
  const Layout layout = composer.layout(strategy);
  std::optional<StageLayers> best = FasterLayout(base, layout, strategy, verdict).fastest(own);
  if (!best || *best == own) return std::nullopt;
  Strategy placed = strategy;
  placed.stage_layers.clear();
  if (*best != layers_by_stage(base.model, placed)) placed.stage_layers = std::move(*best);
  return placed;
}

}  // namespace headroom
