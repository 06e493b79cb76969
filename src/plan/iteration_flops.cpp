#include "headroom/plan/iteration_flops.hpp"

#include <algorithm>

#include "headroom/core/counts.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

namespace {

OpSet frozen_linears(const OpTable& table) {
  OpSet set;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].kind == OpKind::linear && table.ops()[i].frozen) set |= op_bit(i);
  }
  return set;
}

// Sets of ops, one for each kind of layer.
using OpsOfKinds = std::vector<OpSet>;

template <class OpsOf>
OpsOfKinds ops_of_kinds(const ModelLayers& layers, OpsOf ops_of) {
  OpsOfKinds ops;
  for (const LayerKind& kind : layers.kinds) ops.push_back(ops_of(kind));
  return ops;
}

// Returns the FLOPs of the ops, multiplied by `times`. Kinds whose letters have equal values are one
// expression.
Flops counted(const ModelLayers& layers, const Bindings& letters, std::int64_t times, const OpsOfKinds& ops) {
  Flops sum;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const KindSizes& sizes = layers.kinds[i].sizes;
    Expr flops;
    bool first = true;
    for (std::size_t k = 0; k < layers.kinds.size() && first; ++k) {
      if (layers.kinds[k].sizes != sizes) continue;
      first = k >= i;
      flops += layers.kinds[k].count * detail::iteration_flops(layers.kinds[k].ops, ops[k]);
    }
    if (first) sum += Flops((times * flops).evaluate(bindings_of(sizes, letters)));
  }
  return sum;
}

// Returns the FLOPs of the recomputed GEMMs whose results are in a checkpoint's cache.
Flops cached(const LayerKind& kind, const RecomputedOps& recomputed, const Bindings& letters) {
  const Expr flops = cached_flops(kind.ops, {}, recomputed).substitute(Symbol::micro_batch, symbols::B);
  return Flops((kind.count * flops).evaluate(bindings_of(kind.sizes, letters)));
}

}  // namespace

RecomputedParts recomputed_parts(const ModelLayers& layers, const Strategy& strategy,
                                 const ScheduleShape& shape, const ReplayedSchedule& schedule) {
  const std::vector<StagePlace> places = stage_places(layers, strategy);
  const KindCounts all = counts_of(layers);
  const double passes = real(microbatches_of_chunk(shape) * shape.chunks);
  const double copies = real(model_copies(shape.kind));  // each copy runs its share of the microbatches
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
  // The model needs neither padding nor tokens that experts drop.
  Bindings letters = bindings(model, strategy, workload);
  letters.bind(Symbol::vocabulary, static_cast<double>(model.vocabulary))
      .bind(Symbol::imbalance, fullest_rank(MoeImbalance{}, model, 1));
  const OpsOfKinds core =
      ops_of_kinds(layers, [](const LayerKind& kind) { return core_attention_ops(kind.ops); });
  const OpsOfKinds frozen =
      ops_of_kinds(layers, [](const LayerKind& kind) { return frozen_linears(kind.ops); });

  // The backward pass has a GEMM for the gradient of each of two factors, but only one if weights are frozen.
  Flops needed = counted(layers, letters, 3, ops_of_kinds(layers, [](const LayerKind& kind) {
                           return every_op(kind.ops) & ~frozen_linears(kind.ops);
                         }));
  const bool any_frozen =
      std::any_of(frozen.begin(), frozen.end(), [](const OpSet& ops) { return ops != 0; });
  if (any_frozen) needed += counted(layers, letters, 2, frozen);
  const Flops masked = 0.5 * 3 * counted(layers, letters, 1, core);
  Flops once;
  Flops masked_once;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    if (recomputed[i] == 0) continue;
    const RecomputedOps again = recomputed_ops_of(layers.kinds[i], strategy.recompute, {});
    OpsOfKinds ops(layers.kinds.size());
    ops[i] = again.ops;
    once += recomputed[i] * (counted(layers, letters, 1, ops) - cached(layers.kinds[i], again, letters));
    ops[i] = again.ops & core[i];
    masked_once += 0.5 * recomputed[i] * counted(layers, letters, 1, ops);
  }
  if (workload.reference_model) {
    once += counted(layers, letters, 1,
                    ops_of_kinds(layers, [](const LayerKind& kind) { return every_op(kind.ops); }));
    masked_once += 0.5 * counted(layers, letters, 1, core);
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

}  // namespace headroom
