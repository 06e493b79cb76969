// What a layer saved that waits on the host for the backward pass (parallel/offload_modules.hpp).
//
// A saved tensor leaves the device if all ops that save it are offloaded, or where a recomputation starts from it all that then run
// again; one of fewer than 1 Mi elements stays [Megatron-LM, core/pipeline_parallel/fine_grained_activation_offload.py,
// min_offloaded_tensor_size], and so does one whose allocation another one keeps. What nobody needs but lies in one allocation with
// views that leave is freed with them, and not moved. It comes back while the layer after its own is under way backward, so that at a moment of a backward pass a rank has that of two
// layers [ibid., a group ahead].
#pragma once

#include "headroom/memory/stage.hpp"

namespace headroom {

inline constexpr double least_offloaded_elements = 1024 * 1024;

// Of layers that are offloaded whole, all that they save that is large enough; the others keep theirs.
//
// Takes it from what layers keep, and from what their backward passes free. After set_backward_peaks.
void set_offloaded(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                   const Offload& offload, const Recomputation& recompute, Detail detail,
                   const Bindings& letters);

}  // namespace headroom
