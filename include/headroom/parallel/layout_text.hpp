// Reading a pipeline's layout as Megatron-Core writes it (--pipeline-model-parallel-layout): "Et*3|(tt|)*29mL". Writing one
// is megatron_layout() (parallel/stage_layout.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headroom {

struct WrittenLayout {
  std::vector<std::int64_t> stage_layers;  // of each virtual stage, in the order of the model
  std::int64_t mtp_layers = 0;
  bool mtp_beside_loss = true;  // in the stage of the loss, where the model's last part is
  friend bool operator==(const WrittenLayout&, const WrittenLayout&) = default;
};

// The layout that a text says, or the rule that it breaks. Stages stand between bars: E is the embedding, which comes first, t a
// layer, m a layer of multi-token prediction, L the loss, which comes last; x*n and (x)*n repeat, without nesting, and commas say
// nothing [Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py].
std::variant<WrittenLayout, std::string> read_layout(std::string_view text);

}  // namespace headroom
