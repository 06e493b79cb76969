// verl: the trainer of the actor.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/titan_parts.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

namespace {

// Sets the microbatch that `held` tokens of a GPU hold, in sequences of the longest length. It must divide the
// batch of a data-parallel rank. The nearest divisor by ratio is taken, since memory grows with tokens
// [verl/utils/seqlen_balancing.py, rearrange_micro_batches].
void take_tokens_of_gpu(std::int64_t held, std::int64_t longest, std::int64_t ranks, const Written* from,
                        RunScale& scale, RunBuilder& builder) {
  if (held < 1 && from != nullptr) return builder.problem(*from, "must be above 0");
  const double fitting = std::max(
      1.0, static_cast<double>(held) * static_cast<double>(scale.context) / static_cast<double>(longest));
  const std::int64_t of_rank = scale.global && ranks > 0 ? *scale.global / ranks : 0;
  auto micro = static_cast<std::int64_t>(std::min(fitting, static_cast<double>(most_count)));
  const auto farther = [&](std::int64_t count) {
    const double ratio = static_cast<double>(count) / fitting;
    return std::max(ratio, 1 / ratio);
  };
  if (of_rank > 0) micro = 1;
  for (std::int64_t i = 1; i <= of_rank / i; ++i) {
    if (of_rank % i != 0) continue;
    for (const std::int64_t divisor : {i, of_rank / i}) {
      if (farther(divisor) < farther(micro)) micro = divisor;
    }
  }
  scale.micro = micro;
  builder.set("micro_batch", std::to_string(micro), from);
  builder.imply(
      fmt::format("a microbatch of {} tokens a GPU holds {:.3g} of the longest sequences: read as {}", held,
                  fitting, micro),
      from);
}

// Moves the inputs of checkpointed layers to the host [verl/utils/activation_offload.py].
void take_activation_offload(const Written* setting, RunBuilder& builder) {
  if (setting == nullptr || !is_on(*setting)) return;
  if (builder.value("recompute") == "full")
    builder.set("offload_modules", "layer_input", setting);
  else
    builder.leave_out(*setting, "activations on the host");
}

// Sequences of a microbatch: of each GPU, of all of them, or as many as hold a number of tokens.
void take_microbatch(TreeRun& run, RunScale& scale, const std::string& actor) {
  RunBuilder& builder = run.builder();
  const auto find = [&](std::string_view name) {
    return run.find({actor + std::string(name)}, "micro_batch");
  };
  const bool dynamic = run.on(actor + "use_dynamic_bsz");
  const Written* const each = dynamic ? nullptr : find("ppo_micro_batch_size_per_gpu");
  const Written* const all = dynamic || each != nullptr ? nullptr : find("ppo_micro_batch_size");
  const Written* const tokens = dynamic ? find("ppo_max_token_len_per_gpu") : nullptr;
  const auto held = run.count({actor + "ppo_max_token_len_per_gpu"}, "micro_batch");
  const std::optional<std::int64_t> longest = builder.count("sequence");
  const std::int64_t replica = scale.tensor * scale.pipeline * scale.context;
  std::int64_t ranks = 0;
  if (scale.nodes && scale.devices_per_node)
    ranks = product_of(*scale.nodes, *scale.devices_per_node).value_or(0) / replica;
  if (dynamic && held && longest) {
    take_tokens_of_gpu(*held, *longest, ranks, tokens, scale, builder);
  } else if (const auto micro = run.count({actor + "ppo_micro_batch_size_per_gpu"}, "micro_batch")) {
    scale.micro = micro;
    builder.set("micro_batch", std::to_string(*micro), each);
  } else if (const auto whole = run.count(actor + "ppo_micro_batch_size"); whole && ranks > 0) {
    scale.micro = std::max<std::int64_t>(*whole / ranks, 1);
    builder.set("micro_batch", std::to_string(*scale.micro), all);
    builder.imply(
        fmt::format("ppo_micro_batch_size is of all {} data-parallel ranks: {} each", ranks, *scale.micro),
        all);
  } else {
    assume_micro(builder);
  }
}

// What the transformer and the optimizer of Megatron-Core are given beside verl's own settings, which start with
// `of_engine` and `of_optimizer`.
void take_core_overrides(TreeRun& run, const RunScale& scale, const std::string& of_engine,
                         const std::string& of_optimizer) {
  RunBuilder& builder = run.builder();
  const auto transformer = [&](std::string_view name) {
    return of_engine + "override_transformer_config." + std::string(name);
  };
  const auto optimizer = [&](std::string_view name) {
    return of_optimizer + "override_optimizer_config." + std::string(name);
  };
  if (const Written* const kind = run.find(transformer("recompute_granularity"))) {
    builder.set("recompute", lower_case(text_of_values(*kind)), kind);
    const std::string number = transformer("recompute_num_layers");
    if (const auto layers = run.count({number}, "recompute_layers"); layers && *layers > 1)
      builder.set("recompute_layers", std::to_string(*layers), run.find(number));
    if (const Written* const method = run.find(transformer("recompute_method"));
        method != nullptr && builder.value("recompute_layers"))
      builder.set("recompute_method", text_of_values(*method), method);
  }
  const Written* const deepep = run.find(transformer("moe_enable_deepep"));
  const Written* const dispatcher = run.find(transformer("moe_token_dispatcher_type"));
  if (deepep != nullptr && is_on(*deepep))
    builder.set("moe_dispatcher", "deepep", deepep);
  else if (dispatcher != nullptr)
    builder.set("moe_dispatcher", text_of_values(*dispatcher), dispatcher);
  std::string ends;
  const Written* from = nullptr;
  for (const std::string_view end : {"first", "last"}) {
    const Written* const layers = run.find(transformer(fmt::format("num_layers_in_{}_pipeline_stage", end)));
    if (layers == nullptr) continue;
    ends += fmt::format("{}{}={}", ends.empty() ? "" : ",", end, text_of_values(*layers));
    from = layers;
  }
  if (!ends.empty() && scale.pipeline > 1) builder.set("stage_layers", ends, from);
  if (const Written* const host = run.find(optimizer("optimizer_cpu_offload"));
      host != nullptr && is_on(*host)) {
    const Written* const share = run.find(optimizer("optimizer_offload_fraction"));
    std::string text = share == nullptr ? "1" : text_of_values(*share);
    if (text.ends_with('.')) text.pop_back();
    builder.set("optimizer_offload_fraction", text, share == nullptr ? host : share);
    if (const Written* const overlap = run.find(optimizer("overlap_cpu_optimizer_d2h_h2d"));
        overlap != nullptr && is_on(*overlap))
      builder.set("overlap_cpu_optimizer", "yes", overlap);
  }
  if (const Written* const aware = run.find(optimizer("use_precision_aware_optimizer"));
      aware != nullptr && is_on(*aware))
    builder.set("main_params_dtype", "remainder", aware);
}

// Sizes of a trainer on Megatron-Core, whose settings start with `of`, and what verl sets there.
void take_core_ranks(TreeRun& run, RunScale& scale, const std::string& of) {
  RunBuilder& builder = run.builder();
  builder.use_software("megatron-core-2025");
  scale.tensor = run.size("tensor_parallel", {of + "tensor_model_parallel_size"});
  scale.pipeline = run.size("pipeline_parallel", {of + "pipeline_model_parallel_size"});
  scale.context = run.size("context_parallel", {of + "context_parallel_size"});
  run.size("virtual_pipeline", {of + "virtual_pipeline_model_parallel_size"});
  run.size("expert_parallel", {of + "expert_model_parallel_size"});
  const auto expert_tensor = run.count({of + "expert_tensor_parallel_size"}, "expert_tensor_parallel");
  if (expert_tensor && *expert_tensor > 0)
    builder.set("expert_tensor_parallel", std::to_string(*expert_tensor),
                run.find(of + "expert_tensor_parallel_size"));
  if (scale.tensor > 1) {
    builder.set("sequence_parallel", "yes", nullptr);
    builder.imply("verl trains with sequence parallelism on Megatron-Core");
  }
  builder.set("data_sharding", "zero1", nullptr);
  builder.imply("verl takes the distributed optimizer of Megatron-Core");
}

// Its SFT trainers: FSDP unless the engine is Megatron-Core, a batch of 256, microbatches of 4 sequences of at most 1024
// tokens, and checkpoints by default [verl, trainer/config/sft_trainer.yaml]. `packs`: microbatches hold 8192 tokens of a
// GPU by default [verl, trainer/config/sft_trainer_engine.yaml].
LaunchedRun read_sft(TreeRun& run, RunScale scale, const LaunchOptions& options, bool packs) {
  RunBuilder& builder = run.builder();
  if (const Written* const model = run.find_path({"model.partial_pretrain", "model.path"}))
    name_model_of(*model, builder);
  const bool megatron = run.text({"engine"}) == "megatron";
  if (megatron) {
    take_core_ranks(run, scale, "engine.");
    take_core_overrides(run, scale, "engine.", "optim.");
  } else {
    scale.context = run.size("context_parallel",
                             {"ulysses_sequence_parallel_size", "engine.ulysses_sequence_parallel_size"});
    if (scale.context > 1)
      builder.set("cp_comm", "a2a",
                  run.find({"ulysses_sequence_parallel_size", "engine.ulysses_sequence_parallel_size"}));
    builder.set("data_sharding", "zero3", nullptr);
    builder.imply("verl shards the model by FSDP");
  }
  if (run.has("data.micro_batch_size_per_gpu")) take_micro(run, scale, {"data.micro_batch_size_per_gpu"});
  take_global(run, scale, {"data.train_batch_size"});
  if (run.has("data.max_length")) take_sequence(run, {"data.max_length"});
  const Written* const dynamic = run.find("data.use_dynamic_bsz");
  if (dynamic == nullptr ? packs : is_on(*dynamic)) {
    if (dynamic == nullptr) builder.imply("data.use_dynamic_bsz is true by default");
    const std::int64_t longest = builder.count("sequence").value_or(1024);
    const std::int64_t replica = scale.tensor * scale.pipeline * scale.context;
    scale.global = builder.count("global_batch").value_or(256);
    take_tokens_of_gpu(run.count({"data.max_token_len_per_gpu"}, "micro_batch").value_or(8192), longest,
                       scale.devices.value_or(0) / replica, run.find("data.max_token_len_per_gpu"), scale,
                       builder);
  }
  for (const auto& [field, value, key] : {std::tuple{"micro_batch", "4", "data.micro_batch_size_per_gpu"},
                                          {"global_batch", "256", "data.train_batch_size"},
                                          {"sequence", "1024", "data.max_length"}}) {
    if (builder.value(field)) continue;
    builder.set(field, value, nullptr);
    builder.imply(fmt::format("{} is {} by default", key, value));
  }
  scale.micro = builder.count("micro_batch");
  scale.global = builder.count("global_batch");
  const Written* const checkpoints = run.find("model.enable_gradient_checkpointing");
  if (!megatron) {
    builder.set("recompute", checkpoints == nullptr || is_on(*checkpoints) ? "full" : "none", checkpoints);
    if (checkpoints == nullptr) builder.imply("model.enable_gradient_checkpointing is true by default");
  }
  take_model_dtype(run, "model.fsdp_config.model_dtype");
  if (const Written* const host =
          run.find({"model.fsdp_config.cpu_offload", "model.fsdp_config.offload_params"});
      host != nullptr && is_on(*host))
    offload_all(host, builder);
  if (const auto rank = run.count("model.lora_rank"); rank && *rank > 0) {
    builder.set("lora_rank", std::to_string(*rank), run.find("model.lora_rank"));
    if (const Written* const targets = run.find("model.target_modules")) take_lora_targets(*targets, builder);
  }
  if (run.on("model.use_liger")) builder.choose("cross_entropy", "linear_fused", run.find("model.use_liger"));
  static constexpr LaunchKey keys[] = {{"use_remove_padding"}, {"*"}};
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace

LaunchedRun read_verl(const TreeFile& file, const LaunchOptions& options) {
  return read_verl_words(flattened(file.root, file.file), file.file, options);
}

LaunchedRun read_verl_words(std::vector<Written> written, const std::string& file,
                            const LaunchOptions& options, std::optional<std::int64_t> devices,
                            VerlTrainer trainer) {
  RunBuilder builder(file, "verl", "hf-trainer");
  for (Written& setting : written) {
    if (setting.name.starts_with("++")) setting.name.erase(0, 2);
    if (setting.name.starts_with('+')) setting.name.erase(0, 1);
  }
  TreeRun run(last_of_each(std::move(written)), builder);
  const std::string actor = "actor_rollout_ref.actor.";
  const auto in = [&](std::string_view name) { return actor + std::string(name); };
  RunScale scale;
  // A launcher of the SFT trainer says how many GPUs there are.
  const std::string_view decides = devices ? "" : "data_parallel";
  scale.devices_per_node = run.count({"trainer.n_gpus_per_node"}, decides);
  scale.nodes = run.count({"trainer.nnodes"}, decides);
  if (trainer != VerlTrainer::actor || run.has("model.partial_pretrain") || run.has("data.max_length")) {
    if (devices) scale.devices = devices;
    return read_sft(run, scale, options, trainer == VerlTrainer::sft);
  }
  if (const Written* const model = run.find_path({"actor_rollout_ref.model.path"}))
    name_model_of(*model, builder);
  const bool megatron = run.text({in("strategy")}) == "megatron" || run.has_below(actor + "megatron") ||
                        run.text({"model_engine"}) == "megatron" ||
                        run.text("config_name").find("megatron") != std::string::npos;
  if (megatron) {
    take_core_ranks(run, scale, in("megatron."));
  } else {
    scale.context = run.size("context_parallel", {in("ulysses_sequence_parallel_size")});
    if (scale.context > 1) builder.set("cp_comm", "a2a", run.find(in("ulysses_sequence_parallel_size")));
    builder.set("data_sharding", "zero3", nullptr);
    builder.imply("verl shards the actor by FSDP");
  }
  // A step is a mini-batch of prompts, each with its answers.
  const auto mini = run.count({in("ppo_mini_batch_size")}, "global_batch");
  const std::int64_t answers = run.count({"actor_rollout_ref.rollout.n"}, "global_batch").value_or(1);
  const auto samples = mini ? product_of(*mini, answers) : std::nullopt;
  if (mini && (!samples || *samples > most_count)) {
    builder.problem(*run.find({in("ppo_mini_batch_size")}),
                    fmt::format("must be at most {} with its {} answers", most_count, answers));
  } else if (mini) {
    scale.global = *samples;
    builder.set("global_batch", std::to_string(*scale.global), run.find(in("ppo_mini_batch_size")));
    if (answers > 1)
      builder.imply(fmt::format("a mini-batch is {} prompts x {} answers", *mini, answers),
                    run.find("actor_rollout_ref.rollout.n"));
  }
  const auto prompt = run.count({"data.max_prompt_length"}, "sequence");
  const auto response = run.count({"data.max_response_length"}, "sequence");
  if (prompt && response) {
    builder.set("sequence", std::to_string(*prompt + *response), run.find("data.max_response_length"));
    builder.imply(fmt::format("a sequence is a prompt and its answer: {} + {}", *prompt, *response),
                  run.find("data.max_response_length"));
  }
  take_microbatch(run, scale, actor);
  take_core_overrides(run, scale, in("megatron."), in("optim."));
  const Written* const checkpoints = run.find({"actor_rollout_ref.model.enable_gradient_checkpointing"});
  if (!megatron) {
    builder.set("recompute", checkpoints == nullptr || is_on(*checkpoints) ? "full" : "none", checkpoints);
    if (checkpoints == nullptr)
      builder.imply("actor_rollout_ref.model.enable_gradient_checkpointing is true by default since 2025");
    take_activation_offload(run.find("actor_rollout_ref.model.enable_activation_offload"), builder);
    take_model_dtype(run, in("fsdp_config.model_dtype"));
  }
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
  static constexpr LaunchKey keys[] = {
      {"actor_rollout_ref.actor.optim.override_optimizer_config.*", LaunchUse::unmodelled,
       "settings of Megatron-Core's optimizer"},
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
