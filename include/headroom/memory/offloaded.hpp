// Saved activations of a layer that wait on the host for the backward pass (parallel/offload_modules.hpp).
//
// A saved tensor leaves the device if all ops that save it are offloaded. A tensor that a recomputation
// starts from leaves if all ops that it recomputes are offloaded. Two kinds of tensor stay: those of fewer
// than 1 Mi elements [Megatron-LM, core/pipeline_parallel/fine_grained_activation_offload.py,
// min_offloaded_tensor_size], and those whose allocation another saved tensor keeps. A tensor that no op
// needs, but that shares an allocation with views that leave, is freed with them and not moved.
//
// A tensor returns during the backward computation of the layer after its own. A rank then holds the fetched
// tensors of two layers at once [ibid., a group ahead].
#pragma once

#include "headroom/memory/stage.hpp"
#include "headroom/parallel/sharding.hpp"

namespace headroom {

inline constexpr double least_offloaded_elements = 1024 * 1024;

// Moves activations to the host: subtracts them from what layers keep, and from what their backward passes
// free. Layers that are offloaded whole move all saved tensors that are large enough; other layers keep
// theirs. Expects set_backward_peaks to have run.
void set_offloaded(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                   const Offload& offload, const Recomputation& recompute, Detail detail,
                   const Bindings& letters);

}  // namespace headroom
