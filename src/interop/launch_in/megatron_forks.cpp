#include "interop/launch_in/megatron_forks.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/flags.hpp"

namespace headroom {
namespace {

// Returns a count above 0.
std::optional<std::int64_t> argument_count(const std::vector<Written>& written, std::string_view name) {
  const std::optional<std::int64_t> count = count_in_flag(written, name);
  return count && *count > 0 ? count : std::nullopt;
}

// Arguments of generation, of rewards and of logs.
bool is_of_generation(std::string_view name) {
  constexpr std::array<std::string_view, 7> starts{"rollout_", "sglang_", "eval_",  "n_samples",
                                                   "reward_",  "wandb_",  "router_"};
  constexpr std::array<std::string_view, 27> names{"actor_num_nodes",
                                                   "actor_num_gpus_per_node",
                                                   "advantage_estimator",
                                                   "apply_chat_template",
                                                   "balance_data",
                                                   "colocate",
                                                   "entropy_coef",
                                                   "eps_clip",
                                                   "eps_clip_high",
                                                   "hf_checkpoint",
                                                   "input_key",
                                                   "kl_coef",
                                                   "kl_loss_coef",
                                                   "kl_loss_type",
                                                   "label_key",
                                                   "max_tokens_per_gpu",
                                                   "num_epoch",
                                                   "num_steps_per_rollout",
                                                   "num_rollout",
                                                   "over_sampling_batch_size",
                                                   "prompt_data",
                                                   "ref_load",
                                                   "rm_type",
                                                   "update_weight_buffer_size",
                                                   "use_dynamic_batch_size",
                                                   "use_kl_loss",
                                                   "use_wandb"};
  return contains(names, name) || std::any_of(starts.begin(), starts.end(), [&](std::string_view start) {
           return name.starts_with(start);
         });
}

}  // namespace

void rename_of_mindspeed(std::vector<Written>& written) {
  // Its linears of latent attention [MindSpeed-LLM, core/transformer/multi_head_latent_attention.py].
  struct Linear {
    std::string_view name;
    std::vector<std::string> of_core;
  };
  const std::array<Linear, 3> linears{{{"linear_qkv", {"linear_q_down_proj", "linear_kv_down_proj"}},
                                       {"linear_qb", {"linear_q_up_proj"}},
                                       {"linear_kvb", {"linear_kv_up_proj"}}}};
  if (flag_of(written, "multi_head_latent_attention") == nullptr) return;
  for (Written& setting : written) {
    if (setting.name == "multi_head_latent_attention") setting.name = "multi_latent_attention";
    if (setting.name != "lora_target_modules") continue;
    for (const Linear& linear : linears) {
      const auto at = std::find(setting.values.begin(), setting.values.end(), linear.name);
      if (at == setting.values.end()) continue;
      const auto next = setting.values.erase(at);
      setting.values.insert(next, linear.of_core.begin(), linear.of_core.end());
    }
  }
}

bool are_slime_words(const std::vector<Written>& written) {
  return flag_of(written, "actor_num_gpus_per_node") != nullptr &&
         (flag_of(written, "hf_checkpoint") != nullptr || flag_of(written, "rollout_batch_size") != nullptr);
}

void take_slime(MegatronArguments& arguments, RunBuilder& run) {
  std::vector<Written>& written = arguments.written;
  const FilePlace at = flag_of(written, "actor_num_gpus_per_node")->at;
  const auto or_default = [&](const std::string& name, std::vector<std::string> values) {
    if (flag_of(written, name) == nullptr)
      written.push_back({name, std::move(values), fmt::format("slime's {}", name), at, ""});
  };
  run.use_framework("slime");
  for (const std::string_view name :
       {"actor_num_nodes", "actor_num_gpus_per_node", "max_tokens_per_gpu", "rollout_batch_size"}) {
    const Written* const size = flag_of(written, name);
    if (size != nullptr && size->unknown.empty() && !argument_count(written, name))
      run.problem(*size, "must be a whole number above 0");
  }
  const auto nodes = argument_count(written, "actor_num_nodes").value_or(1);
  const auto each = argument_count(written, "actor_num_gpus_per_node");
  if (const auto devices = each ? product_of(nodes, *each) : std::nullopt) {
    arguments.devices = devices;
    arguments.devices_unknown = false;
    run.devices(*devices);
  } else if (each) {
    run.problem(*flag_of(written, "actor_num_gpus_per_node"),
                "must be smaller: times --actor-num-nodes it does not fit into 64 bits");
  }
  if (flag_of(written, "fp16") == nullptr) or_default("bf16", {});
  or_default("use_distributed_optimizer", {});
  run.imply("slime shards the optimizer over DP ranks: --use-distributed-optimizer is always set");
  const auto tokens = argument_count(written, "max_tokens_per_gpu");
  const Written* const packs = flag_of(written, "use_dynamic_batch_size");
  const auto length = tokens
                          ? product_of(*tokens, argument_count(written, "context_parallel_size").value_or(1))
                          : std::nullopt;
  if (packs != nullptr && length) {
    const Written from = *flag_of(written, "max_tokens_per_gpu");
    std::erase_if(written, [](const Written& setting) { return setting.name == "seq_length"; });
    written.push_back({"seq_length", {std::to_string(*length)}, from.as_written, from.at, ""});
    run.assume(fmt::format(
                   "a microbatch is one packed sequence of {} tokens, the limit of --max-tokens-per-gpu, and "
                   "each sample of the global batch fills one (--sequence TOKENS, --global-batch N)",
                   *length),
               &from);
  }
  or_default("seq_length", {"4096"});
  // [slime/utils/arguments.py: samples of a rollout, over the steps that train on them]
  const auto prompts = argument_count(written, "rollout_batch_size");
  const std::int64_t steps = argument_count(written, "num_steps_per_rollout").value_or(1);
  const auto samples = prompts
                           ? product_of(*prompts, argument_count(written, "n_samples_per_prompt").value_or(1))
                           : std::nullopt;
  if (samples) or_default("global_batch_size", {std::to_string(std::max<std::int64_t>(*samples / steps, 1))});
  or_default("micro_batch_size", {"1"});
  run.assume("the memory of the rollout engine is not counted: --colocate frees it during training");
  if (const Written* const divergence = flag_of(written, "use_kl_loss"))
    run.leave_out(*divergence, "the passes of the reference model");
  std::erase_if(written, [](const Written& setting) { return is_of_generation(setting.name); });
}

}  // namespace headroom
