// Pipeline stages of Megatron-Core, of equal layers where no layout says otherwise.
#include <algorithm>

#include <fmt/format.h>

#include "interop/launch_in/setting.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/text.hpp"

namespace headroom {

void RunBuilder::even_stages(const Written& pipeline, const Written* each, int ends) {
  even_stages_ = EvenStages{pipeline, each == nullptr ? std::nullopt : std::optional(*each), ends};
}

// [Megatron-LM, training/arguments.py, validate_args; core/transformer/transformer_block.py,
// get_num_layers_to_build]
void RunBuilder::finish_stages() {
  const std::int64_t ranks = count("pipeline_parallel").value_or(1);
  if (!even_stages_ || !run_.model || ranks < 2 || value("stage_layers")) return;
  const bool has_mixers =
      std::any_of(run_.model->layer_kinds.begin(), run_.model->layer_kinds.end(),
                  [](const LayerDescription& kind) { return has_mixer(kind.architecture.mixers); });
  if (has_mixers) return;  // their pattern divides them
  const std::int64_t layers = run_.model->layers + even_stages_->ends;
  if (const auto& each = even_stages_->each) {
    const auto size = whole_count(text_of_values(*each));
    if (!size || *size < 1) return problem(*each, "must be a whole number above 0");
    const auto stage = product_of(*size, ranks);
    if (!stage || layers % *stage != 0)
      return problem(*each,
                     fmt::format("must divide the layers of a rank ({} layers, PP {})", layers, ranks));
    if (layers > *stage) set("virtual_pipeline", std::to_string(layers / *stage), &*each);
  }
  const auto stages = product_of(ranks, count("virtual_pipeline").value_or(1));
  if (!stages || layers % *stages == 0) return;
  refuse({.fields = {"pipeline_parallel", "virtual_pipeline"},
          .rule = fmt::format("must divide the {} layers into equal stages ({} % {} = {})", layers, layers,
                              *stages, layers % *stages),
          .source = "Megatron-LM, core/transformer/transformer_block.py, get_num_layers_to_build",
          .written = even_stages_->pipeline.as_written,
          .at = even_stages_->pipeline.at});
  assume(fmt::format(
             "Megatron-Core refuses {} layers on {} stages without a layout: Headroom gives some stages one "
             "more layer",
             layers, *stages),
         &even_stages_->pipeline);
}

}  // namespace headroom
