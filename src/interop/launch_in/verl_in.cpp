// verl: the trainer of the actor.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

LaunchedRun read_verl(const TreeFile& file, const LaunchOptions& options) {
  return read_verl_words(flattened(file.root, file.file), file.file, options);
}

LaunchedRun read_verl_words(std::vector<Written> written, const std::string& file,
                            const LaunchOptions& options) {
  RunBuilder builder(file, "verl", "hf-trainer");
  for (Written& setting : written) {
    if (setting.name.starts_with("++")) setting.name.erase(0, 2);
    if (setting.name.starts_with('+')) setting.name.erase(0, 1);
  }
  TreeRun run(std::move(written), builder);
  const std::string actor = "actor_rollout_ref.actor.";
  const auto in = [&](std::string_view name) { return actor + std::string(name); };
  RunScale scale;
  scale.devices_per_node = run.count({"trainer.n_gpus_per_node"});
  scale.nodes = run.count({"trainer.nnodes"});
  if (const Written* const model = run.find({"actor_rollout_ref.model.path"})) name_model_of(*model, builder);
  const bool megatron = run.text({in("strategy")}) == "megatron" || run.has_below(actor + "megatron") ||
                        run.text({"model_engine"}) == "megatron";
  if (megatron) builder.use_software("megatron-core-2025");
  scale.tensor = run.size("tensor_parallel", {in("megatron.tensor_model_parallel_size")});
  scale.pipeline = run.size("pipeline_parallel", {in("megatron.pipeline_model_parallel_size")});
  scale.context = run.size("context_parallel",
                           {in("megatron.context_parallel_size"), in("ulysses_sequence_parallel_size")});
  if (!megatron && scale.context > 1)
    builder.set("cp_comm", "a2a", run.find(in("ulysses_sequence_parallel_size")));
  run.size("virtual_pipeline", {in("megatron.virtual_pipeline_model_parallel_size")});
  run.size("expert_parallel", {in("megatron.expert_model_parallel_size")});
  const auto expert_tensor = run.count({in("megatron.expert_tensor_parallel_size")});
  if (expert_tensor && *expert_tensor > 0)
    builder.set("expert_tensor_parallel", std::to_string(*expert_tensor),
                run.find(in("megatron.expert_tensor_parallel_size")));
  if (megatron && scale.tensor > 1) {
    builder.set("sequence_parallel", "yes", nullptr);
    builder.imply("verl trains with sequence parallelism on Megatron-Core");
  }
  builder.set("data_sharding", megatron ? "zero1" : "zero3", nullptr);
  builder.imply(megatron ? "verl takes the distributed optimizer of Megatron-Core"
                         : "verl shards the actor by FSDP");
  scale.micro = run.count({in("ppo_micro_batch_size_per_gpu")});
  if (scale.micro) {
    builder.set("micro_batch", std::to_string(*scale.micro), run.find(in("ppo_micro_batch_size_per_gpu")));
  } else if (const Written* const tokens = run.find({in("ppo_max_token_len_per_gpu")})) {
    builder.leave_out(*tokens, "microbatches of so many tokens: they are counted as one sequence");
  }
  // A step is a mini-batch of prompts, each with its answers.
  const auto mini = run.count({in("ppo_mini_batch_size")});
  const std::int64_t answers = run.count({"actor_rollout_ref.rollout.n"}).value_or(1);
  if (mini) {
    scale.global = *mini * answers;
    builder.set("global_batch", std::to_string(*scale.global), run.find(in("ppo_mini_batch_size")));
    if (answers > 1)
      builder.imply(fmt::format("a mini-batch is {} prompts x {} answers", *mini, answers),
                    run.find("actor_rollout_ref.rollout.n"));
  }
  const auto prompt = run.count({"data.max_prompt_length"});
  const auto response = run.count({"data.max_response_length"});
  if (prompt && response) {
    builder.set("sequence", std::to_string(*prompt + *response), run.find("data.max_response_length"));
    builder.imply(fmt::format("a sequence is a prompt and its answer: {} + {}", *prompt, *response),
                  run.find("data.max_response_length"));
  }
  const std::string transformer = "megatron.override_transformer_config.";
  const Written* const kind = run.find({in(transformer + "recompute_granularity")});
  if (kind != nullptr) {
    builder.set("recompute", lower_case(text_of_values(*kind)), kind);
    if (const auto layers = run.count(in(transformer + "recompute_num_layers")); layers && *layers > 1)
      builder.set("recompute_layers", std::to_string(*layers),
                  run.find(in(transformer + "recompute_num_layers")));
    if (const Written* const method = run.find(in(transformer + "recompute_method"));
        method != nullptr && builder.value("recompute_layers"))
      builder.set("recompute_method", text_of_values(*method), method);
  }
  const Written* const checkpoints = run.find({"actor_rollout_ref.model.enable_gradient_checkpointing"});
  if (checkpoints != nullptr && kind == nullptr && !megatron)
    builder.set("recompute", is_on(*checkpoints) ? "full" : "none", checkpoints);
  for (const std::string_view backend : {"fsdp_config.", "megatron."}) {
    const Written* const optimizer = run.find({in(std::string(backend) + "optimizer_offload")});
    const Written* const parameters = run.find({in(std::string(backend) + "param_offload")});
    for (const Written* const setting : {optimizer, parameters}) {
      if (setting != nullptr && is_on(*setting))
        builder.leave_out(*setting,
                          "state on the host between phases: it is on the GPU while the actor trains");
    }
  }
  if (const Written* const policy = run.find({in("fsdp_config.fsdp_size")});
      policy != nullptr && whole_count(text_of_values(*policy)).value_or(-1) > 0)
    scale.shard = whole_count(text_of_values(*policy));
  if (const auto rank = run.count({"actor_rollout_ref.model.lora_rank"}); rank && *rank > 0) {
    builder.set("lora_rank", std::to_string(*rank), run.find("actor_rollout_ref.model.lora_rank"));
    if (const Written* const targets = run.find("actor_rollout_ref.model.target_modules"))
      take_lora_targets(*targets, builder);
  }
  builder.assume(
      "the trainer of the actor alone is read: rollouts, references and critics take memory and time beside "
      "it");
  const Written* const dispatcher = run.find(in(transformer + "moe_token_dispatcher_type"));
  if (dispatcher != nullptr) {
    const bool deepep = run.on(in(transformer + "moe_enable_deepep"));
    builder.set("moe_dispatcher", deepep ? "deepep" : text_of_values(*dispatcher), dispatcher);
  }
  static constexpr LaunchKey keys[] = {
      {"actor_rollout_ref.actor.megatron.override_*", LaunchUse::unmodelled, "settings of Megatron-Core"},
      {"actor_rollout_ref.*"},
      {"data.*"},
      {"trainer.*"},
      {"algorithm.*"},
      {"critic.*", LaunchUse::unmodelled, "the critic"},
      {"reward_model.*"},
      {"custom_reward_function.*"},
      {"reward.*"},
      {"ray_*"},
      {"global_profiler.*"},
      {"actor.*"},
      {"rollout.*"},
      {"model_engine"},
      {"env.*"},
      {"hydra*"},
      {"*"}};
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
