// What of a rank lies in the memory of its host.
//
// A fraction of main parameters and moments is stepped by the host's CPUs: gradients go to the host, 16-bit weights come back
// [Megatron-LM, --optimizer-cpu-offload, core/optimizer/cpu_offloading/hybrid_optimizer.py; DeepSpeed, zero_optimization.offload_optimizer].
// Shards of weights and gradients that data-parallel ranks divide may follow: each unit's come before it is gathered, and go when it
// is reduced [torch, distributed/fsdp/_fully_shard, CPUOffloadPolicy; DeepSpeed, zero_optimization.offload_param].
// What forward passes saved may wait there for the backward pass: of parts of all layers (offload_modules.hpp), or all that the first
// layers saved [Megatron-LM, --cpu-offloading-num-layers; Transformer Engine, pytorch/cpu_offload.py].
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/core/fraction.hpp"

namespace headroom {

struct Offload {
  Fraction optimizer;     // of main parameters and moments
  bool overlaps = false;  // gradients, steps on the host and weights run beside each other, tensor by tensor
  bool parameters = false;           // shards of weights and of gradients
  std::vector<std::string> modules;  // whose saved tensors wait there for the backward pass
  std::int64_t layers = 0;           // of the model, from the first on, all of whose saved tensors do
  friend bool operator==(const Offload&, const Offload&) = default;
};

inline bool offloads_activations(const Offload& offload) {
  return !offload.modules.empty() || offload.layers > 0;
}

// The field that says which activations.
inline const char* activations_field(const Offload& offload) {
  return offload.layers > 0 ? "offload_layers" : "offload_modules";
}

inline bool offloads(const Offload& offload) {
  return offload.optimizer.value > 0 || offload.parameters || offloads_activations(offload);
}

}  // namespace headroom
