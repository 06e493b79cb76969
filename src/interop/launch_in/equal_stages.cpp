// Pipeline stages of Megatron-Core, of equal layers where no layout says otherwise.
#include <algorithm>

#include <fmt/format.h>

#include "interop/launch_in/setting.hpp"
#include "interop/launch_in/tree_run.hpp"
#include "io/text.hpp"

namespace headroom {

namespace {

bool has_mixer_layers(const LaunchedRun& run) {
  return std::any_of(run.model->layer_kinds.begin(), run.model->layer_kinds.end(),
                     [](const LayerDescription& kind) { return has_mixer(kind.architecture.mixers); });
}

}  // namespace

void RunBuilder::need_equal_stages(EqualStages stages) { equal_stages_ = std::move(stages); }

// [Megatron-LM, training/arguments.py, validate_args; core/transformer/transformer_block.py,
// get_num_layers_to_build]
void RunBuilder::finish_stages() {
  // The pattern of mixers divides them.
  if (!equal_stages_ || !run_.model || has_mixer_layers(run_)) return;
  const auto& [pipeline, each, of_embedding, of_loss] = *equal_stages_;
  if (!pipeline.unknown.empty()) return;
  const bool embedding = of_embedding && is_on(*of_embedding);
  const bool loss = of_loss && is_on(*of_loss);
  const std::int64_t ranks = count("pipeline_parallel").value_or(1);
  const std::int64_t layers = run_.model->layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
  if (each && !is_null(*each)) {
    if (!each->unknown.empty()) return unresolved(*each, "virtual_pipeline");
    const auto size = whole_count(text_of_values(*each));
    if (!size || *size < 1) return problem(*each, "must be a whole number above 0");
    const auto stage = product_of(*size, ranks);
    if (!stage || layers % *stage != 0)
      return problem(*each,
                     fmt::format("must divide the layers of a rank ({} layers, PP {})", layers, ranks));
    if (layers > *stage) set("virtual_pipeline", std::to_string(layers / *stage), &*each);
  }
  const auto stages = product_of(ranks, count("virtual_pipeline").value_or(1));
  if (ranks < 2 || value("stage_layers") || !stages || *stages < 2) return;
  if (layers % *stages != 0) {
    const std::string_view ends = embedding && loss ? ", the embedding and the loss"
                                  : embedding       ? " and the embedding"
                                  : loss            ? " and the loss"
                                                    : "";
    refuse({.fields = {"pipeline_parallel", "virtual_pipeline", "stage_layers"},
            .rule = fmt::format("must divide the {} layers{} into equal stages ({} % {} = {})",
                                run_.model->layers, ends, layers, *stages, layers % *stages),
            .source = "Megatron-LM, core/transformer/transformer_block.py, get_num_layers_to_build",
            .written = pipeline.as_written,
            .at = pipeline.at});
    return assume(
        fmt::format("Megatron-LM refuses {} layers{} on {} stages without a layout: some stages hold "
                    "one more layer here",
                    run_.model->layers, ends, *stages),
        &pipeline);
  }
  if (!embedding && !loss) return;
  const Written& setting = embedding ? *of_embedding : *of_loss;
  const std::int64_t usual = layers / *stages;
  if (usual == 1 && *stages == ranks)
    return problem(setting, "gives a rank no layer, which is not modelled: lower the pipeline-parallel size");
  set("stage_layers",
      fmt::format("{},{}{}", embedding ? usual - 1 : usual,
                  *stages > 2 ? fmt::format("{}*{},", usual, *stages - 2) : "", loss ? usual - 1 : usual),
      &setting);
}

}  // namespace headroom
