#include "headroom/parallel/stage_layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "headroom/core/counts.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

// The load that a stage would have with one more layer.
struct NextLayer {
  double load = 0;
  std::int64_t order = 0;  // smaller goes first among equal loads
  std::size_t stage = 0;
};

Bindings bindings_at_own_length(const Transformer& model) {
  return bindings(model, {}, {.global_batch = 1, .sequence = model.sequence});
}

// Cuts a sequence of layers of unequal loads into stages.
class Partition {
 public:
  Partition(std::span<const double> loads, std::size_t stages, const EndLoads& ends)
      : before_(loads.size() + 1), stages_(stages), ends_(ends) {
    std::partial_sum(loads.begin(), loads.end(), before_.begin() + 1);
  }

  [[nodiscard]] std::vector<std::int64_t> layers() const {
    const double heaviest = least_heaviest();
    const std::vector<std::size_t> furthest = reach(heaviest);
    std::vector<std::int64_t> result(stages_);
    std::size_t end = before_.size() - 1;
    double rest = before_.back() + ends_.first + ends_.last;
    for (std::size_t stage = stages_; stage-- > 0;) {
      std::size_t first = 0;
      if (stage > 0) {
        // Choose the cut whose load is closest to this stage's share: the remaining load, spread evenly over
        // this and the earlier stages. Earlier stages must be able to take what remains.
        first = std::min(furthest[stage - 1], end - 1);
        const double share = rest / static_cast<double>(stage + 1);
        const auto off = [&](std::size_t from) { return std::abs(load(stage, from, end) - share); };
        while (first > stage && load(stage, first - 1, end) <= heaviest && off(first - 1) <= off(first)) {
          --first;
        }
      }
      rest -= load(stage, first, end);
      result[stage] = static_cast<std::int64_t>(end - first);
      end = first;
    }
    return result;
  }

 private:
  [[nodiscard]] double load(std::size_t stage, std::size_t first, std::size_t end) const {
    return before_[end] - before_[first] + (stage == 0 ? ends_.first : 0) +
           (stage + 1 == stages_ ? ends_.last : 0);
  }

  // Returns the furthest end of each stage if no stage is heavier than `heaviest` and each later stage keeps
  // a layer. The last end falls short of all layers if there is no such cut. Returns nothing if a stage
  // cannot take even one layer.
  [[nodiscard]] std::vector<std::size_t> reach(double heaviest) const {
    std::vector<std::size_t> ends;
    std::size_t end = 0;
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      const std::size_t first = end;
      const std::size_t most = before_.size() - (stages_ - stage);
      while (end < most && load(stage, first, end + 1) <= heaviest) ++end;
      if (end == first) return {};
      ends.push_back(end);
    }
    return ends;
  }

  // Returns the least load of the heaviest stage, by bisection to a relative 1e-12.
  [[nodiscard]] double least_heaviest() const {
    double good = before_.back() + ends_.first + ends_.last;
    double bad = 0;
    for (double middle = good / 2; middle > bad && middle < good && good - bad > 1e-12 * good;
         middle = bad + (good - bad) / 2) {
      const std::vector<std::size_t> ends = reach(middle);
      (!ends.empty() && ends.back() + 1 == before_.size() ? good : bad) = middle;
    }
    return good;
  }

  std::vector<double> before_;  // total load of the layers before each layer
  std::size_t stages_;
  EndLoads ends_;
};

bool all_equal(std::span<const std::int64_t> counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](std::int64_t count) { return count == counts.front(); });
}

// Returns layers as text: "t", "t*8", or nothing for no layers.
std::string layers_text(std::int64_t layers) {
  if (layers == 0) return {};
  return layers == 1 ? "t" : "t*" + std::to_string(layers);
}

// Returns equal stages between the ends as text: "t*8|", or "(t*8|)*14," for several.
std::string stages_text(std::int64_t layers, std::int64_t stages) {
  const std::string one = layers_text(layers) + "|";
  return stages == 1 ? one : "(" + one + ")*" + std::to_string(stages) + ",";
}

}  // namespace

StageLayout stage_layout(std::int64_t layers, const Strategy& strategy) {
  return all_equal(layers_by_stage(layers, strategy)) ? StageLayout::even : StageLayout::uneven;
}

std::int64_t longest_stage(std::int64_t layers, const Strategy& strategy) {
  if (strategy.stage_layers.empty())
    return ceiling(layers, strategy.pipeline_parallel * strategy.virtual_pipeline);
  return *std::max_element(strategy.stage_layers.begin(), strategy.stage_layers.end());
}

EndLoads end_loads(const Transformer& model) {
  const ModelLayers layers = layers_of(model);
  const Bindings letters = bindings_at_own_length(model);
  std::array<double, 3> flops{};  // by KindPosition
  for (const LayerKind& kind : layers.kinds) {
    const Expr of_kind = kind.count * forward_flops(kind.ops, {}, every_op(kind.ops));
    flops.at(index(kind.position)) += of_kind.evaluate(bindings_of(kind.sizes, letters));
  }
  const double layer = flops.at(index(KindPosition::layer)) / real(model.layers);
  return {.first = flops.at(index(KindPosition::first)) / layer,
          .last = flops.at(index(KindPosition::last)) / layer};
}

std::vector<std::int64_t> balanced_layers(std::int64_t layers, std::int64_t stages, const EndLoads& ends) {
  EXPECTS(stages >= 1 && layers >= stages);
  const std::vector<std::int64_t> any(index(stages), layers);
  return *balanced_layers(layers, ends, any);
}

std::optional<std::vector<std::int64_t>> balanced_layers(std::int64_t layers, const EndLoads& ends,
                                                         std::span<const std::int64_t> most) {
  const std::int64_t stages = std::ssize(most);
  const auto room = [&](std::int64_t sum, std::int64_t one) { return sum + std::min(one, layers); };
  if (*std::min_element(most.begin(), most.end()) < 1) return std::nullopt;
  if (std::accumulate(most.begin(), most.end(), std::int64_t{0}, room) < layers) return std::nullopt;
  // No stage with room ends up with fewer layers: an end has at most its own load, in layers, fewer than the
  // others.
  const auto behind = static_cast<std::int64_t>(std::ceil(std::max(ends.first, ends.last)));
  const std::int64_t least = std::max<std::int64_t>(1, layers / stages - behind);
  std::vector<std::int64_t> by_stage;
  const auto later = [](const NextLayer& x, const NextLayer& y) {
    return x.load != y.load ? x.load > y.load : x.order > y.order;
  };
  std::priority_queue<NextLayer, std::vector<NextLayer>, decltype(later)> next(later);
  std::int64_t left = layers;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const bool last = stage == stages - 1;
    const double beside = (stage == 0 ? ends.first : 0) + (last ? ends.last : 0);
    const std::int64_t first = std::min(least, most[index(stage)]);
    by_stage.push_back(first);
    left -= first;
    if (first == most[index(stage)]) continue;
    next.push({.load = real(first) + 1 + beside,
               .order = last ? stage : stages - 2 - stage,
               .stage = index(stage)});
  }
  for (; left > 0; --left) {
    NextLayer taken = next.top();
    next.pop();
    if (++by_stage[taken.stage] == most[taken.stage]) continue;
    taken.load += 1;
    next.push(taken);
  }
  return by_stage;
}

std::vector<double> layer_loads(const Transformer& model) {
  const ModelLayers layers = layers_of(model);
  if (layer_kind_count(layers) == 1) return {};
  const Bindings letters = bindings_at_own_length(model);
  std::vector<double> loads;
  for (const LayerRun& run : layers.runs) {
    const LayerKind& kind = layers.kinds[run.kind];
    if (kind.position != KindPosition::layer) continue;
    const Expr flops = forward_flops(kind.ops, {}, every_op(kind.ops));
    loads.insert(loads.end(), index(run.count), flops.evaluate(bindings_of(kind.sizes, letters)));
  }
  const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / real(model.layers);
  for (double& load : loads) load /= mean;
  return loads;
}

std::vector<std::int64_t> balanced_layers(std::span<const double> loads, std::int64_t stages,
                                          const EndLoads& ends) {
  EXPECTS(stages >= 1 && std::ssize(loads) >= stages);
  return Partition(loads, index(stages), ends).layers();
}

std::string megatron_layout(std::span<const std::int64_t> layers_by_stage, std::int64_t mtp_layers) {
  EXPECTS(!layers_by_stage.empty());
  const std::string closing = std::string(index(mtp_layers), 'm') + "L";
  if (layers_by_stage.size() == 1) return "E" + layers_text(layers_by_stage.front()) + "," + closing;
  std::string text = "E" + layers_text(layers_by_stage.front()) + "|";
  const std::span<const std::int64_t> inner = layers_by_stage.subspan(1, layers_by_stage.size() - 2);
  for (std::size_t first = 0; first < inner.size();) {
    std::size_t end = first;
    while (end < inner.size() && inner[end] == inner[first]) ++end;
    text += stages_text(inner[first], static_cast<std::int64_t>(end - first));
    first = end;
  }
  const std::string last = layers_text(layers_by_stage.back());
  return text + (last.empty() ? closing : last + "," + closing);
}

std::optional<EndRanks> end_ranks(std::span<const std::int64_t> layers_by_stage,
                                  std::int64_t pipeline_parallel) {
  const auto stages = static_cast<std::int64_t>(layers_by_stage.size());
  EXPECTS(pipeline_parallel >= 1 && stages % pipeline_parallel == 0);
  // Every chunk of a rank must be as long as the rank's first; ranks in between must be like the second rank.
  const std::int64_t chunks = stages / pipeline_parallel;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t rank = stage % pipeline_parallel;
    const bool between = rank > 0 && rank < pipeline_parallel - 1;
    if (layers_by_stage[index(stage)] != layers_by_stage[index(between ? 1 : rank)]) return std::nullopt;
  }
  return EndRanks{.first = chunks * layers_by_stage.front(),
                  .last = chunks * layers_by_stage[index(pipeline_parallel - 1)]};
}

std::variant<std::vector<std::int64_t>, std::string> layers_with_ends(const EndRanks& ends,
                                                                      std::int64_t layers,
                                                                      std::int64_t pipeline_parallel,
                                                                      std::int64_t virtual_pipeline) {
  EXPECTS(layers >= 1 && pipeline_parallel >= 1 && virtual_pipeline >= 1);
  const std::int64_t given = (ends.first > 0 ? 1 : 0) + (ends.last > 0 ? 1 : 0);
  const std::int64_t others = pipeline_parallel - given;
  const std::int64_t left = layers - ends.first - ends.last;
  if (others < 0) return "needs `pipeline_parallel` of at least 2 for two end ranks";
  if (others == 0 && left != 0) {
    return "must add up to the " + std::to_string(layers) + " layers, not " + std::to_string(layers - left) +
           ": `pipeline_parallel` has no other ranks";
  }
  if (others > 0 && (left < others || left % others != 0)) {
    return "must leave a multiple of the " + std::to_string(others) +
           (others == 1 ? " other rank" : " other ranks") + " of `pipeline_parallel`, not " +
           std::to_string(left) + " of " + std::to_string(layers) + " layers";
  }
  std::vector<std::int64_t> by_rank(index(pipeline_parallel), others > 0 ? left / others : 0);
  if (ends.first > 0) by_rank.front() = ends.first;
  if (ends.last > 0) by_rank.back() = ends.last;
  std::vector<std::int64_t> by_stage;
  for (std::int64_t chunk = 0; chunk < virtual_pipeline; ++chunk) {
    for (const std::int64_t of_rank : by_rank) {
      if (of_rank % virtual_pipeline != 0) {
        return "must give each rank a multiple of `virtual_pipeline` " + std::to_string(virtual_pipeline) +
               ", not " + std::to_string(of_rank) + " layers";
      }
      by_stage.push_back(of_rank / virtual_pipeline);
    }
  }
  return by_stage;
}

}  // namespace headroom
