// What of a rank's state lies in the memory of its host. A fraction of main parameters and moments is stepped by the host's CPUs: gradients
// go to the host, 16-bit weights come back [Megatron-LM, --optimizer-cpu-offload, core/optimizer/cpu_offloading/hybrid_optimizer.py;
// DeepSpeed, zero_optimization.offload_optimizer].
#pragma once

namespace headroom {

// From 0 to 1.
struct Fraction {
  double value = 0;
  friend bool operator==(const Fraction&, const Fraction&) = default;
};

struct Offload {
  Fraction optimizer;     // of main parameters and moments
  bool overlaps = false;  // gradients, steps on the host and weights run beside each other, tensor by tensor
  friend bool operator==(const Offload&, const Offload&) = default;
};

}  // namespace headroom
