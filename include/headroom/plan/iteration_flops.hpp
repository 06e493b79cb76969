// FLOPs of one iteration: those that the model needs, and those that its recomputation adds (throughput.hpp).
#pragma once

#include "headroom/core/fixed_vector.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/plan/throughput.hpp"
#include "headroom/schedule/times.hpp"

namespace headroom {

// Fraction of the layer passes of each kind whose backward pass recomputes: 1 unless layers or microbatches
// are exempt.
using RecomputedParts = FixedVector<double, most_kinds>;
RecomputedParts recomputed_parts(const ModelLayers& layers, const Strategy& strategy,
                                 const ScheduleShape& shape, const ReplayedSchedule& schedule);

// Returns the FLOPs that the model needs, and those of `recomputed` parts of the passes of each kind.
IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Strategy& strategy,
                               const Workload& workload, const RecomputedParts& recomputed);
// Returns the FLOPs that the model needs, without recomputation.
IterationFlops iteration_flops(const Transformer& model, const ModelLayers& layers, const Workload& workload);

}  // namespace headroom
