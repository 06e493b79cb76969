// What a published run says of CUDA graphs, and of what its model's name tells.
#pragma once

#include <optional>
#include <string>

#include "headroom/calibrate/measured_run.hpp"
#include "strict_json.hpp"

namespace headroom {

// Of "none", "full_iteration" or {"impl": "transformer_engine", "scope": ["attn"]}, by Megatron-Core's words.
struct StatedGraphs {
  RecordedGraphs recorded;
  std::string rule;  // that it breaks; else empty
};
StatedGraphs graphs_of(const Json& run);

// What the embedded model of the run's name has, where the run's sizes are its and it says nothing of them: biases of linears,
// clamped activations, scaled cosines and sines.
void choices_of_embedded(MeasuredRun& run);

}  // namespace headroom
