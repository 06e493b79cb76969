// Rules of Megatron-Bridge that Megatron-Core's do not have, and its recipes of mixed precision.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

const Written* setting_in(const std::vector<Written>& written, std::string_view name) {
  const auto last = std::find_if(written.rbegin(), written.rend(), [&](const Written& setting) {
    return setting.name == name && setting.unknown.empty() && !is_null(setting);
  });
  return last == written.rend() ? nullptr : &*last;
}

std::optional<std::int64_t> count_in(const std::vector<Written>& written, std::string_view name) {
  const Written* const setting = setting_in(written, name);
  return setting == nullptr ? std::nullopt : whole_count(text_of_values(*setting));
}

// A recipe of mixed precision, and what it says of weights in 8 or 4 bits
// [Megatron-Bridge, training/mixed_precision.py].
struct PrecisionRecipe {
  std::string_view name;  // between "bf16_with_" and "_mixed"
  bool gathers_quantized;
  bool keeps_ends;  // the first and the last layer are in BF16
};
constexpr std::array<PrecisionRecipe, 6> precision_recipes{{
    {"fp8_delayed_scaling", true, false},
    {"fp8_current_scaling", true, true},
    {"fp8_subchannel_scaling", false, false},
    {"mxfp8", true, false},
    {"nvfp4", true, false},
    {"fp8", true, false},  // of NeMo 2.0: delayed scaling
}};

}  // namespace

bool are_bridge_words(const std::vector<Written>& written) {
  const bool has_flags = std::any_of(written.begin(), written.end(), [](const Written& it) {
    return it.as_written.starts_with("--") && it.name.find('.') == std::string::npos &&
           !it.name.starts_with("config_");  // Hydra's own
  });
  return !has_flags && std::any_of(written.begin(), written.end(),
                                   [](const Written& it) { return it.name.find('.') != std::string::npos; });
}

void take_bridge_precision(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const Written* const setting = run.find("mixed_precision");
  if (setting == nullptr) return;
  std::string name = lower_case(text_of_values(*setting));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::size_t start = std::min(name.find("bf16"), name.find("fp16"));
  const bool ends = name.ends_with("_mixed");
  const bool plain = ends && start != std::string::npos && name.substr(start + 4) == "_mixed";
  const auto recipe =
      std::find_if(precision_recipes.begin(), precision_recipes.end(), [&](const PrecisionRecipe& row) {
        return start != std::string::npos &&
               name.substr(start + 4) == fmt::format("_with_{}_mixed", row.name);
      });
  if (!plain && recipe == precision_recipes.end())
    return builder.problem(
        *setting,
        "is no recipe of Megatron-Bridge: must be bf16_mixed, fp16_mixed or bf16_with_NAME_mixed, where NAME "
        "is fp8_delayed_scaling, fp8_current_scaling, fp8_subchannel_scaling, mxfp8 or nvfp4");
  const bool half = name.compare(start, 4, "fp16") == 0;
  if (!run.has("grad_reduce_in_fp32"))
    builder.set("gradient_dtype", half ? "bf16" : "fp32", setting);  // 16 bits, either way
  if (half && plain)
    builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", setting);
  if (plain) return;
  const bool shards = builder.value("data_sharding").value_or("none") != "none";
  if (recipe->gathers_quantized && shards && !run.has("fp8_param_gather") && !run.has("fp8_param")) {
    builder.set("fp8_param_gather", "yes", setting);
    builder.imply(fmt::format("{} gathers quantized weights", text_of_values(*setting)), setting);
  }
  if (recipe->keeps_ends && !run.has("first_last_layers_bf16")) {
    builder.set("bf16_layers_at_start", "1", setting);
    builder.set("bf16_layers_at_end", "1", setting);
    builder.imply(fmt::format("{} keeps the first and the last layer in BF16", text_of_values(*setting)),
                  setting);
  }
}

void refuse_bridge(const std::vector<Written>& written, RunBuilder& builder) {
  const Written* length = setting_in(written, "dataset.sequence_length");
  if (length == nullptr) length = setting_in(written, "dataset.seq_length");
  const auto of_model = count_in(written, "model.seq_length");
  const auto of_data = length == nullptr ? std::nullopt : whole_count(text_of_values(*length));
  if (of_model && of_data && *of_model != *of_data)
    builder.refuse(
        {.fields = {"sequence"},
         .rule = fmt::format("model.seq_length must be the data set's ({} and {})", *of_model, *of_data),
         .source = "Megatron-Bridge, src/megatron/bridge/training/config.py",
         .written = length->as_written,
         .at = length->at});
  // A recipe beneath may say the rest of what only states some sizes.
  if (setting_in(written, "model.hidden_size") == nullptr) return;
  const Written* const virtual_at = setting_in(written, "model.virtual_pipeline_model_parallel_size");
  const auto stages = count_in(written, "model.virtual_pipeline_model_parallel_size");
  const auto layers = count_in(written, "model.num_layers");
  const auto ranks = count_in(written, "model.pipeline_model_parallel_size");
  constexpr std::array<std::string_view, 8> uneven{"model.pipeline_model_parallel_layout",
                                                   "model.hybrid_layer_pattern",
                                                   "model.hybrid_override_pattern",
                                                   "model.is_hybrid_model",
                                                   "model.num_layers_in_first_pipeline_stage",
                                                   "model.num_layers_in_last_pipeline_stage",
                                                   "model.account_for_embedding_in_pipeline_split",
                                                   "model.account_for_loss_in_pipeline_split"};
  const bool even = std::none_of(uneven.begin(), uneven.end(), [&](std::string_view name) {
    const Written* const setting = setting_in(written, name);
    return setting != nullptr && is_on(*setting);
  });
  const bool sizes = stages && layers && ranks && *stages > 0 && *ranks > 1 && *layers > 0;
  if (even && sizes && *layers % *ranks == 0 && *layers / *ranks % *stages != 0)
    builder.refuse({.fields = {"virtual_pipeline", "pipeline_parallel"},
                    .rule = fmt::format("must divide the {} layers of a pipeline rank", *layers / *ranks),
                    .source = "Megatron-Bridge, src/megatron/bridge/models/gpt_provider.py",
                    .written = virtual_at->as_written,
                    .at = virtual_at->at});
  const Written* const delays = setting_in(written, "comm_overlap.delay_wgrad_compute");
  const Written* const overlap = setting_in(written, "comm_overlap.overlap_moe_expert_parallel_comm");
  if (delays != nullptr && is_on(*delays) && (overlap == nullptr || !is_on(*overlap)))
    builder.refuse({.fields = {"overlap_expert_all_to_all"},
                    .rule = "comm_overlap.delay_wgrad_compute needs "
                            "comm_overlap.overlap_moe_expert_parallel_comm=true",
                    .source = "Megatron-Bridge, src/megatron/bridge/training/comm_overlap.py",
                    .written = delays->as_written,
                    .at = delays->at});
}

}  // namespace headroom
