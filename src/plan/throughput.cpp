#include "headroom/plan/throughput.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/stage_places.hpp"

namespace headroom {

namespace {

OpSet frozen_linears(const OpTable& table) {
  OpSet set;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].kind == OpKind::linear && table.ops()[i].frozen) set |= op_bit(i);
  }
  return set;
}

// FLOPs of the ops of each kind that `ops_of` names, `times` over. Kinds whose letters stand for the same numbers are
// one expression.
template <class OpsOf>
Flops counted(const ModelLayers& layers, const Bindings& letters, std::int64_t times, OpsOf ops_of) {
  Flops sum;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const KindSizes& sizes = layers.kinds[i].sizes;
    const auto same = [&](const LayerKind& kind) { return kind.sizes == sizes; };
    if (std::any_of(layers.kinds.begin(), layers.kinds.begin() + static_cast<std::ptrdiff_t>(i), same)) {
      continue;
    }
    const Expr flops = times * forward_flops(layers, [&](const LayerKind& kind) {
                         return same(kind) ? ops_of(kind) : OpSet();
                       });
    sum += Flops(flops.evaluate(bindings_of(sizes, letters)));
  }
  return sum;
}

}  // namespace

RecomputedParts recomputed_parts(const ModelLayers& layers, const Strategy& strategy,
                                 const ScheduleShape& shape, const ReplayedSchedule& schedule) {
  const std::vector<StagePlace> places = stage_places(layers, strategy);
  const KindCounts all = counts_of(layers);
  const double passes = real(microbatches_of_chunk(shape) * shape.chunks);
  const double copies = real(model_copies(shape.kind));  // each of which runs its part of the microbatches
  RecomputedParts parts;
  for (std::size_t i = 0; i < all.size(); ++i) parts.push_back(0);
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    const double stored = real(schedule.ranks[index(rank)].stored_forwards);
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const StagePlace& place = places[index(stage_of(shape, rank, chunk))];
      const KindCounts recomputed = recomputed_of_kind(place, strategy.recompute);
      for (std::size_t i = 0; i < all.size(); ++i)
        parts[i] += (1 - stored / passes) / copies * real(recomputed[i]);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) parts[i] /= real(all[i]);
  return parts;
}

IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Strategy& strategy,
                               const Workload& workload, const RecomputedParts& recomputed) {
  // Padding is no work that the model needs, nor are tokens that experts drop.
  Bindings letters = bindings(model, strategy, workload);
  letters.bind(Symbol::vocabulary, static_cast<double>(model.vocabulary))
      .bind(Symbol::imbalance, fullest_rank(MoeImbalance{}, model, 1));
  const auto core = [](const LayerKind& kind) { return core_attention_ops(kind.ops); };

  // The backward pass has a product for the gradient of each of two factors, but for one where weights are frozen.
  Flops needed = counted(layers, letters, 3, [](const LayerKind& kind) {
    return every_op(kind.ops) & ~frozen_linears(kind.ops);
  });
  const bool any_frozen = std::any_of(layers.kinds.begin(), layers.kinds.end(),
                                      [](const LayerKind& kind) { return frozen_linears(kind.ops) != 0; });
  if (any_frozen) {
    needed += counted(layers, letters, 2, [](const LayerKind& kind) { return frozen_linears(kind.ops); });
  }
  const Flops masked = 0.5 * 3 * counted(layers, letters, 1, core);
  Flops once;
  Flops masked_once;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    if (recomputed[i] == 0) continue;
    const auto recompute = [&](const LayerKind& kind) {
      return &kind == &layers.kinds[i] ? recomputed_ops_of(kind, strategy.recompute, {}).ops : OpSet();
    };
    const LayerKind& kind_of = layers.kinds[i];
    const Expr cached = cached_flops(kind_of.ops, {}, recomputed_ops_of(kind_of, strategy.recompute, {}));
    const Expr of_iteration = kind_of.count * cached.substitute(Symbol::micro_batch, symbols::B);
    once += recomputed[i] * (counted(layers, letters, 1, recompute) -
                             Flops(of_iteration.evaluate(bindings_of(kind_of.sizes, letters))));
    masked_once += 0.5 * recomputed[i] * counted(layers, letters, 1, [&](const LayerKind& kind) {
                     return core(kind) & recompute(kind);
                   });
  }
  return {.model = needed,
          .model_causal = needed - masked,
          .hardware = needed + once,
          .hardware_causal = needed - masked + once - masked_once,
          .hardware_paper = needed + 3 * once};
}

IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers,
                               const Workload& workload) {
  RecomputedParts none;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) none.push_back(0);
  return iteration_flops(model, layers, Strategy{}, workload, none);
}

Throughput throughput(const IterationFlops& flops, Seconds iteration, const Strategy& strategy,
                      const Workload& workload, const Device& device) {
  const auto ranks = static_cast<double>(devices(strategy));
  const double samples = static_cast<double>(workload.global_batch) / iteration.count();
  const double tokens = samples * static_cast<double>(workload.sequence);
  const FlopsPerSecond peak = peak_of(device, compute_dtype(strategy.precision));
  const auto part_of_peak = [&](Flops done) { return utilization(done, iteration, devices(strategy), peak); };
  return {.tokens_per_second = tokens,
          .tokens_per_second_per_device = tokens / ranks,
          .samples_per_second = samples,
          .flops_per_device = flops.model_causal / iteration / ranks,
          .mfu = part_of_peak(flops.model_causal),
          .hfu = part_of_peak(flops.hardware_causal),
          .mfu_full = part_of_peak(flops.model),
          .hfu_full = part_of_peak(flops.hardware),
          .mfu_half = utilization(flops.model_causal, iteration, devices(strategy), device.half_peak),
          .hfu_paper = part_of_peak(flops.hardware_paper)};
}

}  // namespace headroom
