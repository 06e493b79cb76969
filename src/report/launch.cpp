#include "report/launch.hpp"

#include <fmt/format.h>

#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/parallel/stage_layout.hpp"
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

std::string launch_line(const Transformer& model, const Strategy& strategy) {
  std::string text;
  if (stage_layout(model.layers, strategy) == StageLayout::uneven) {
    text = "uneven stages: Megatron-Core's " + stage_flags(model, strategy) + bare_ends(model, strategy);
  }
  if (strategy.microbatch_group_size > strategy.pipeline_parallel) {
    text += fmt::format(
        "{}microbatches in groups of {}: Megatron-Core's "
        "--microbatch-group-size-per-virtual-pipeline-stage {}",
        text.empty() ? "" : "; ", strategy.microbatch_group_size, strategy.microbatch_group_size);
  }
  return text;
}

std::string launch_text(const LaunchFlags& launch, const Style& style) {
  const bool overrides = launch.launcher == Launcher::deepspeed;
  std::string text = fmt::format("\n{} {}:\n", overrides ? "In the configuration of" : "Launch with",
                                 name_of(launch.launcher));
  std::string line = " ";
  for (const std::string& flag : launch.flags) {
    const bool full = line.size() > 1 && style.columns > 0 && line.size() + flag.size() + 3 > style.columns;
    if (overrides ? line.size() > 1 : full) {
      text += line + (overrides ? "\n" : " \\\n");
      line = overrides ? " " : "   ";
    }
    line += " " + flag;
  }
  text += line + "\n";
  for (const std::string& lack : launch.lacks)
    text += in_lines("- no flag for " + lack, style.columns, 2) + "\n";
  return text;
}

}  // namespace headroom
