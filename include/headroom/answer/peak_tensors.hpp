// The activations that a plan's fullest pipeline rank saves at its peak, tensor by tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Equal tensors of a kind of layers, of all layers and passes in flight.
struct PeakTensor {
  std::string name;
  std::string op;      // that saves it
  std::string layers;  // their kind, or an end of the model
  Dtype dtype = Dtype::half;
  std::string expression;  // bytes of one, in letters of the paper
  Bytes each;
  std::int64_t count = 0;
  // Changes that leave none of it, each legal: values of --recompute-ops, or "full" for --recompute full.
  std::vector<std::string> freed_by;
  friend bool operator==(const PeakTensor&, const PeakTensor&) = default;
};
Bytes total(const PeakTensor& tensor);

// Returns the saved activations when the step of the peak begins, those that take most first. They add up to
// the layers, embedding and output layer of the account, and more if the step has freed some before its peak.
// Empty if a rank saves only some passes in full, or layers share checkpoints.
std::vector<PeakTensor> peak_tensors(const Plan& plan);

}  // namespace headroom
