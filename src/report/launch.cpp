#include "report/launch.hpp"

#include <fmt/format.h>

#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// Megatron-Core's flags for stages of so many layers.
std::string stage_flags(const Transformer& model, const Strategy& strategy) {
  const std::vector<std::int64_t> by_stage = layers_by_stage(model.layers, strategy);
  if (const auto pattern = hybrid_pattern(model, by_stage)) {
    return fmt::format("--hybrid-layer-pattern '{}'", *pattern);
  }
  std::string layout =
      fmt::format("--pipeline-model-parallel-layout '{}'", megatron_layout(by_stage, model.mtp_layers));
  const auto ends = end_ranks(by_stage, strategy.pipeline_parallel);
  if (!ends) return layout;
  return fmt::format("{}, or --decoder-first-pipeline-num-layers {} --decoder-last-pipeline-num-layers {}",
                     layout, ends->first, ends->last);
}

// Which ends of the model have a virtual stage of their own.
std::string bare_ends(const Transformer& model, const Strategy& strategy) {
  const std::vector<std::int64_t> by_stage = layers_by_stage(model.layers, strategy);
  const bool first = by_stage.front() == 0;
  const bool last = by_stage.back() == 0;
  if (first && last) return "; the embedding and the output layer are virtual stages of their own";
  if (first || last) {
    return fmt::format("; the {} is a virtual stage of its own", first ? "embedding" : "output layer");
  }
  return {};
}

}  // namespace

std::string launch_line(const Transformer& model, const Software& software, const Strategy& strategy) {
  std::string text;
  if (stage_layout(model.layers, strategy) == StageLayout::uneven) {
    text = software.launcher == Launcher::torchtitan
               ? fmt::format("uneven stages: {} layers", fmt::join(layers_by_stage(model, strategy), ","))
               : "uneven stages: Megatron-Core's " + stage_flags(model, strategy);
    text += bare_ends(model, strategy);
  }
  if (strategy.microbatch_group_size > strategy.pipeline_parallel) {
    text += fmt::format(
        "{}microbatches in groups of {}: Megatron-Core's "
        "--microbatch-group-size-per-virtual-pipeline-stage {}",
        text.empty() ? "" : "; ", strategy.microbatch_group_size, strategy.microbatch_group_size);
  }
  return text;
}

std::string launch_text(const std::optional<Launch>& launch, const Style& style) {
  if (!launch) return {};
  const bool markdown = style.format == Format::markdown;
  std::string text = fmt::format("\nLaunch with {}: {}\n", launch->release, launch->command);
  if (markdown && !launch->lacks.empty()) text += '\n';
  for (const std::string& lack : launch->lacks)
    text += in_lines("- cannot be launched: " + lack, style.columns, 2) + "\n";
  for (const auto& [name, written] : launch->files) {
    text += markdown ? fmt::format("\n`{}`:\n\n```\n{}```\n", name, written)
                     : fmt::format("\n--- {}\n{}", name, written);
  }
  return text;
}

}  // namespace headroom
