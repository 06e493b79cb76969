// What ranks exchange to have the same scales with delayed scaling: at the end of every pass of a virtual stage the largest elements of all
// tensors that its linears cast are put side by side, their maximum over the ranks is taken by one all-reduce that nothing runs beside,
// and one kernel makes the next scales of it [Transformer Engine, pytorch/quantization.py, autocast_exit, reduce_and_update_fp8_tensors; Megatron-LM,
// core/parallel_state.py, get_amax_reduction_group]. The forward pass has those of inputs, weights and outputs, the backward pass
// those of two gradients.
#pragma once

#include <optional>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/axes.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Of delayed scaling: t c d ranks, or t c of them; none with other precisions, whose scales are of one rank's tensors.
std::optional<Group> scale_group(const Strategy& strategy, std::int64_t devices_per_node);

// Linears of layers that are in the type, of a model.
std::int64_t narrow_linears(const ModelLayers& layers);

struct ScaleBytes {
  double forward = 0;
  double backward = 0;
  friend bool operator==(const ScaleBytes&, const ScaleBytes&) = default;
};

// Of so many linears: fp32 numbers.
ScaleBytes scale_bytes(std::int64_t linears);

}  // namespace headroom
