// Offloading from a rank to the memory of its host.
//
// Optimizer: the host's CPUs step a fraction of main parameters and moments. Gradients go to the host, and
// 16-bit weights come back [Megatron-LM, --optimizer-cpu-offload,
// core/optimizer/cpu_offloading/hybrid_optimizer.py; DeepSpeed, zero_optimization.offload_optimizer].
//
// Parameters: shards of weights and gradients can be offloaded too. A unit's weights come back before they
// are gathered, and its gradients leave once they are reduced [torch, distributed/fsdp/_fully_shard,
// CPUOffloadPolicy; DeepSpeed, zero_optimization.offload_param].
//
// Activations: saved tensors can wait on the host for the backward pass. Either those of some modules of all
// layers (offload_modules.hpp), or all those of the first layers [Megatron-LM, --cpu-offloading-num-layers;
// Transformer Engine, pytorch/cpu_offload.py].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/core/fraction.hpp"

namespace headroom {

struct Offload {
  Fraction optimizer;                // fraction of main parameters and moments
  bool overlaps = false;             // sends, steps and fetches overlap, tensor by tensor
  bool parameters = false;           // shards of weights and gradients
  std::vector<std::string> modules;  // modules whose saved tensors are offloaded
  std::int64_t layers = 0;           // first layers of the model that offload all saved tensors
  friend bool operator==(const Offload&, const Offload&) = default;
};

inline bool offloads_activations(const Offload& offload) {
  return !offload.modules.empty() || offload.layers > 0;
}

// Returns the name of the field that selects the offloaded activations.
inline const char* activations_field(const Offload& offload) {
  return offload.layers > 0 ? "offload_layers" : "offload_modules";
}

inline bool offloads(const Offload& offload) {
  return offload.optimizer.value > 0 || offload.parameters || offloads_activations(offload);
}

}  // namespace headroom
