// Exchanges by which ranks agree on the scales of delayed scaling. At the end of every pass of a virtual
// stage, the largest elements of all tensors that its linears cast are concatenated. One all-reduce without
// overlap takes their maximum over the ranks, and one kernel computes the next scales from it [Transformer
// Engine, pytorch/quantization.py, autocast_exit, reduce_and_update_fp8_tensors; Megatron-LM,
// core/parallel_state.py, get_amax_reduction_group]. The forward pass covers inputs, weights and outputs; the
// backward pass covers two gradients.
#pragma once

#include <optional>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/axes.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns the group that shares scales under delayed scaling: t c d ranks, or t c of them. Nothing with other
// precisions, whose scales are local to a rank.
std::optional<Group> scale_group(const Strategy& strategy, std::int64_t devices_per_node);

// Returns how many linears of a model's layers run in fewer than 16 bits.
std::int64_t narrow_linears(const ModelLayers& layers);

struct ScaleBytes {
  double forward = 0;
  double backward = 0;
  friend bool operator==(const ScaleBytes&, const ScaleBytes&) = default;
};

// Returns bytes of the largest elements of `linears` linears, in FP32.
ScaleBytes scale_bytes(std::int64_t linears);

}  // namespace headroom
