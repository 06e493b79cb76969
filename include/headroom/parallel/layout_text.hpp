// Reads a pipeline layout in the syntax of Megatron-Core (--pipeline-model-parallel-layout):
// "Et*3|(tt|)*29mL". megatron_layout() (parallel/stage_layout.hpp) writes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headroom {

struct WrittenLayout {
  std::vector<std::int64_t> stage_layers;  // layers of each virtual stage, in the order of the model
  std::int64_t mtp_layers = 0;
  bool mtp_beside_loss = true;  // MTP layers are in the stage of the loss
  friend bool operator==(const WrittenLayout&, const WrittenLayout&) = default;
};

// Returns the layout that a text describes, or the rule that it breaks. Bars separate stages. E is the
// embedding (first), t a layer, m a layer of multi-token prediction, L the loss (last). x*n and (x)*n repeat,
// without nesting; commas are ignored [Megatron-LM,
// megatron/core/transformer/pipeline_parallel_layer_layout.py].
std::variant<WrittenLayout, std::string> read_layout(std::string_view text);

// Returns the layers of each stage if the text is a value of Megatron-Core's
// --pipeline-model-parallel-layout, or of --hybrid-layer-pattern with bars between stages.
std::optional<std::vector<std::int64_t>> megatron_stages(std::string_view text);

// Value that removes the stage layers of a launch file: stages are then as even as possible.
inline constexpr std::string_view even_stages = "even";

}  // namespace headroom
