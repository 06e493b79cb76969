#include "headroom/parallel/launcher_fields.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

using Fields = std::span<const std::string_view>;

// global_batch and sequence are in every launch; moe_imbalance and moe_balancing are
// assumptions, not settings.
constexpr std::string_view all_told[] = {
    "data_parallel", "micro_batch", "recompute", "recompute_ops", "recompute_layers", "recompute_method",
    "data_sharding", "global_batch", "sequence", "moe_imbalance", "moe_balancing",
    // Refused by a rule of its own where a stack has one microbatch of each rank in a group.
    "microbatch_group_size"};
constexpr std::string_view optimizer_fields[] = {"optimizer", "main_params_dtype", "exp_avg_dtype",
                                                 "exp_avg_sq_dtype"};
constexpr std::string_view adapter_fields[] = {"lora_rank", "lora_targets", "lora_dropout", "base_dtype"};
// Of the fork's megatron/training/arguments.py, and Megatron-Core's beside them.
constexpr std::string_view zero_bubble_told[] = {"tensor_parallel",
                                                 "pipeline_parallel",
                                                 "virtual_pipeline",
                                                 "context_parallel",
                                                 "expert_parallel",
                                                 "expert_tensor_parallel",
                                                 "moe_dispatcher",
                                                 "schedule",
                                                 "stage_layers",
                                                 "sequence_parallel",
                                                 "distribute_saved_activations",
                                                 "keep_pipeline_outputs",
                                                 "optimizer"};
constexpr std::string_view megatron_told[] = {"cp_comm",
                                              "hierarchical_cp_sizes",
                                              "moe_router_padding",
                                              "moe_pad_to_capacity",
                                              "overlap_expert_all_to_all",
                                              "shard_size",
                                              "no_reshard_after_forward",
                                              "precision",
                                              "fp8_param_gather",
                                              "bf16_layers_at_start",
                                              "bf16_layers_at_end",
                                              "fp8_attention",
                                              "fp8_output_layer",
                                              "fp8_activation_input",
                                              "bf16_modules",
                                              "tp_only_amax_red",
                                              "gradient_dtype",
                                              "optimizer_offload_fraction",
                                              "overlap_cpu_optimizer",
                                              "offload_parameters",
                                              "offload_modules",
                                              "offload_layers"};
constexpr std::string_view titan_told[] = {"tensor_parallel",
                                           "pipeline_parallel",
                                           "virtual_pipeline",
                                           "context_parallel",
                                           "cp_comm",
                                           "expert_parallel",
                                           "expert_tensor_parallel",
                                           "moe_dispatcher",
                                           "schedule",
                                           "stage_layers",
                                           "sequence_parallel",
                                           "shard_size",
                                           "no_reshard_after_forward",
                                           "precision",
                                           "gradient_dtype",
                                           "step_in_backward",
                                           "optimizer_offload_fraction",
                                           "offload_parameters"};
constexpr std::string_view deepspeed_told[] = {
    "tensor_parallel", "pipeline_parallel",          "schedule",           "shard_size",
    "gradient_dtype",  "optimizer_offload_fraction", "offload_parameters", "offload_modules"};
constexpr std::string_view accelerate_told[] = {
    "shard_size",     "no_reshard_after_forward",   "sync_each_batch",
    "gradient_dtype", "optimizer_offload_fraction", "offload_parameters"};

std::vector<Fields> told_to(Launcher launcher) {
  switch (launcher) {
    case Launcher::megatron_lm:
    case Launcher::megatron_bridge:
      return {all_told, zero_bubble_told, megatron_told, optimizer_fields, adapter_fields};
    case Launcher::zero_bubble: return {all_told, zero_bubble_told};
    case Launcher::torchtitan: return {all_told, titan_told};
    case Launcher::deepspeed: return {all_told, deepspeed_told, optimizer_fields};
    case Launcher::accelerate: return {all_told, accelerate_told, optimizer_fields, adapter_fields};
  }
  EXPECTS(!"unknown launcher");
  return {};
}

}  // namespace

bool has_words(Launcher launcher, std::string_view field) {
  const std::vector<Fields> told = told_to(launcher);
  return std::any_of(told.begin(), told.end(), [&](Fields fields) { return contains(fields, field); });
}

}  // namespace headroom
