// What a published run says of CUDA graphs, and of what its model's name tells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/measured_run.hpp"
#include "strict_json.hpp"

namespace headroom {

// Of "none", "full_iteration" or {"impl": "transformer_engine", "scope": ["attn"]}, by Megatron-Core's words.
struct StatedGraphs {
  RecordedGraphs recorded;
  std::string rule;  // that it breaks; else empty
};
StatedGraphs graphs_of(const Json& run);

// Whether linears have biases in the embedded model of that name, where the run's sizes are its.
std::optional<bool> bias_of_embedded(const std::string& name, const MeasuredRun& run);

}  // namespace headroom
