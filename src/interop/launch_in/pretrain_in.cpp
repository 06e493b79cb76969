// nanotron and llm-foundry.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

namespace {

// What GPT-3's configuration has unlike Llama's [nanotron, examples of GPT3Config].
void take_gpt3(TreeRun& run, const std::string& activation, const std::string& gated,
               const std::string& sinusoidal) {
  RunBuilder& builder = run.builder();
  const Written* const function = run.find(activation);
  if (function == nullptr) return;
  builder.member("activation", run.on(gated) ? "geglu" : "gelu", function);
  builder.member("normalization", "layer_norm", nullptr);
  builder.member("linear_bias", true, nullptr);
  builder.member("positions", run.on(sinusoidal) ? "none" : "learned", run.find(sinusoidal));
  builder.imply("GPT-3's layers: an MLP of two linears with biases, and layer normalization", function);
}

// [huggingface/nanotron, src/nanotron/config/models_config.py, GPTBigCodeConfig and Starcoder2Config:
// __post_init__; models/starcoder2.py, get_embeddings_lm_head_tied_names]
void take_starcoder2(TreeRun& run, const std::string& at) {
  RunBuilder& builder = run.builder();
  builder.member("activation", "gelu", nullptr);
  builder.member("normalization", "layer_norm", nullptr);
  builder.member("linear_bias", true, nullptr);
  builder.member("tied_embeddings", true, nullptr);
  const std::int64_t width = run.count(at + "hidden_size").value_or(0);
  member_if(builder, "feedforward", 4 * width);
  const Written* const grouped = run.find(at + "grouped_query");
  if (grouped != nullptr && is_on(*grouped)) {
    if (run.on(at + "multi_query")) builder.problem(*grouped, "cannot be used with multi_query");
    if (!run.has(at + "num_kv_heads")) builder.problem(*grouped, "needs num_kv_heads");
    take_size(run, "key_value_heads", {at + "num_kv_heads"});
  } else if (!run.is_open({at + "grouped_query"})) {
    builder.member("key_value_heads", 1, run.find(at + "multi_query"));
  }
  take_size(run, "window", {at + "sliding_window_size"});
}

// Rules of nanotron that are not Megatron-Core's.
void refuse_nanotron(TreeRun& run, const RunScale& scale) {
  RunBuilder& builder = run.builder();
  const Written* const mode = run.find("parallelism.tp_mode");
  const std::string mode_word = mode == nullptr ? "all_reduce" : lower_case(text_of_values(*mode));
  if (mode_word != "all_reduce" && mode_word != "reduce_scatter")
    builder.problem(*mode, "must be ALL_REDUCE or REDUCE_SCATTER");
  const Written* const engine = run.find("parallelism.pp_engine");
  const std::string engine_word = engine == nullptr ? "afab" : lower_case(text_of_values(*engine));
  if (engine_word != "1f1b" && engine_word != "afab") builder.problem(*engine, "must be 1f1b or afab");
  const Written* const async = run.find("parallelism.tp_linear_async_communication");
  if (async != nullptr && is_on(*async)) {
    if (mode_word == "all_reduce" && scale.tensor > 1)
      builder.refuse({.fields = {"tensor_parallel", "sequence_parallel"},
                      .rule = "tp_linear_async_communication needs tp_mode REDUCE_SCATTER",
                      .source = "nanotron, src/nanotron/parallel/tensor_parallel/nn.py",
                      .written = async->as_written,
                      .at = async->at});
    builder.leave_out(*async, "asynchronous collectives of tensor parallelism");
  }
  const auto heads = run.count("model.model_config.num_key_value_heads");
  if (heads && *heads > 0 && *heads < scale.tensor) {
    const Written* const at = run.find("parallelism.tp");
    builder.refuse({.fields = {"tensor_parallel"},
                    .rule = fmt::format("must be at most the {} key/value heads", *heads),
                    .source = "nanotron, src/nanotron/config/config.py",
                    .written = at->as_written,
                    .at = at->at});
  }
  if (engine_word == "1f1b" && scale.accumulation && *scale.accumulation < scale.pipeline - 1) {
    const Written* const at = run.find("tokens.batch_accumulation_per_replica");
    builder.refuse(
        {.fields = {"pipeline_parallel", "schedule", "micro_batch", "global_batch", "data_parallel"},
         .rule = fmt::format("1f1b needs {} microbatches or more (PP - 1), not {}", scale.pipeline - 1,
                             *scale.accumulation),
         .source = "nanotron, src/nanotron/parallel/pipeline_parallel/engine.py",
         .written = at->as_written,
         .at = at->at});
  }
}

}  // namespace

LaunchedRun read_nanotron(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "nanotron", "megatron-core-2025");
  builder.assume(
      "nanotron has no stack of its own here: Megatron-Core's kernels and overlaps stand for its own");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  scale.tensor = run.size("tensor_parallel", {"parallelism.tp"});
  scale.pipeline = run.size("pipeline_parallel", {"parallelism.pp"});
  scale.context = run.size("context_parallel", {"parallelism.context_parallel_size"});
  const std::int64_t data = run.size("data_parallel", {"parallelism.dp"});
  run.size("expert_parallel", {"parallelism.expert_parallel_size"});
  scale.devices = scale.tensor * scale.pipeline * scale.context * data;
  take_micro(run, scale, {"tokens.micro_batch_size"});
  scale.accumulation = run.above_zero({"tokens.batch_accumulation_per_replica"});
  take_sequence(run, {"tokens.sequence_length"});
  refuse_nanotron(run, scale);
  const std::string mode = lower_case(run.text("parallelism.tp_mode"));
  if (mode == "reduce_scatter") {
    if (scale.tensor > 1) builder.set("sequence_parallel", "yes", run.find("parallelism.tp_mode"));
  } else if (scale.tensor > 1) {
    builder.imply("tp_mode ALL_REDUCE is without sequence parallelism");
  }
  if (const Written* const again = run.find("parallelism.tp_recompute_allgather");
      again != nullptr && !is_on(*again) && scale.tensor > 1)
    builder.set("save_gathered_input", "yes", again);
  if (const Written* const engine = run.find("parallelism.pp_engine");
      engine != nullptr && scale.pipeline > 1) {
    builder.set("schedule", lower_case(text_of_values(*engine)) == "1f1b" ? "1f1b" : "gpipe", engine);
  } else if (scale.pipeline > 1) {
    builder.set("schedule", "gpipe", nullptr);
    builder.imply("pp_engine is afab where it is not written: all forward passes, then all backward passes");
  }
  if (const Written* const layer = run.find("parallelism.recompute_layer")) {
    builder.set("recompute", is_on(*layer) ? "full" : "none", layer);
  } else if (const Written* const old =
                 run.find({"parallelism.recompute_granularity", "recompute_granularity"})) {
    builder.set("recompute", lower_case(text_of_values(*old)), old);
  }
  const std::int64_t stage = run.count("optimizer.zero_stage").value_or(0);
  builder.set("data_sharding", stage == 0 ? "none" : fmt::format("zero{}", stage),
              run.find("optimizer.zero_stage"));
  if (const Written* const sums = run.find("optimizer.accumulate_grad_in_fp32"))
    builder.set("gradient_dtype", is_on(*sums) ? "fp32" : "bf16", sums);
  if (const Written* const name = run.find({"optimizer.optimizer_factory.name"}))
    take_optimizer(*name, builder);
  if (const Written* const dtype = run.find("model.dtype")) {
    if (text_of_values(*dtype).find("32") != std::string::npos)
      builder.take_fp32_as_bf16(dtype);
    else
      builder.set("precision", "bf16", dtype);
  }
  const std::string m = "model.model_config.";
  const auto named = [&](std::string_view key) { return m + std::string(key); };
  if (run.has(named("hidden_size")) || run.has(named("d_model"))) {
    take_size(run, "hidden", {named("hidden_size"), named("d_model")});
    take_size(run, "layers", {named("num_hidden_layers"), named("num_layers")});
    take_size(run, "heads", {named("num_attention_heads")});
    take_size(run, "key_value_heads", {named("num_key_value_heads")});
    take_size(run, "feedforward", {named("intermediate_size")});
    take_size(run, "vocabulary", {named("vocab_size")});
    take_size(run, "max_positions", {named("max_position_embeddings")});
    if (const auto multiple = run.count({"model.make_vocab_size_divisible_by"}))
      builder.member("vocabulary_multiple", *multiple, run.find("model.make_vocab_size_divisible_by"));
    builder.member("tied_embeddings", run.on(named("tie_word_embeddings")),
                   run.find(named("tie_word_embeddings")));
    if (run.on(named("attention_bias"))) builder.member("qkv_bias", true, run.find(named("attention_bias")));
    const std::string experts = run.has_below(named("moe_config")) ? named("moe_config.") : m;
    if (take_size(run, "experts/count",
                  {experts + "num_experts", experts + "moe_num_experts", experts + "num_local_experts"})) {
      take_size(run, "experts/per_token",
                {experts + "top_k", experts + "num_experts_per_token", experts + "num_experts_per_tok"});
      take_size(run, "experts/feedforward",
                {experts + "moe_intermediate_size", experts + "intermediate_size"});
      member_if(builder, "experts/per_token", 1);
      if (run.on(experts + "enable_shared_expert")) {
        const auto width =
            run.count({experts + "shared_expert_intermediate_size", named("intermediate_size")});
        builder.member("experts/shared_feedforward", width.value_or(0),
                       run.find(experts + "enable_shared_expert"));
      }
    }
    if (run.on(named("is_starcoder2_config")))
      take_starcoder2(run, named(""));
    else
      take_gpt3(run, named("activation_function"), named("moe_glu"), named("sinusoidal_position_embedding"));
    llama_members(builder);
  } else {
    builder.assume("model.model_config has no hidden_size: give --model");
  }
  static constexpr LaunchKey keys[] = {
      {"checkpoints.*"},
      {"data_stages.*"},
      {"data.*"},
      {"general.*"},
      {"logging.*"},
      {"lighteval.*"},
      {"profiler.*"},
      {"s3_upload.*"},
      {"tokenizer.*"},
      {"tokens.*"},
      {"optimizer.*"},
      {"model.init_method.*"},
      {"model.ddp_bucket_cap_mb"},
      {"model.*"},
      {"metrics_logging.*"},
      {"experiment_logger.*"},
      {"kill_switch_path"},
      {"parallelism.moe_layer_recompute", LaunchUse::unmodelled, "recomputation of experts alone"},
      {"parallelism.*"},
  };
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

namespace {

// Takes the sizes by which a randomly initialized model overrides its transformers configuration.
void take_overridden_sizes(TreeRun& run) {
  const Written* const pretrained = run.find("model.pretrained");
  if (pretrained == nullptr || is_on(*pretrained)) return;  // other sizes would not load
  const std::string at = "model.config_overrides.";
  for (const auto& [ours, theirs] :
       {std::pair{"hidden", "hidden_size"}, std::pair{"layers", "num_hidden_layers"},
        std::pair{"heads", "num_attention_heads"}, std::pair{"key_value_heads", "num_key_value_heads"},
        std::pair{"head_size", "head_dim"}, std::pair{"feedforward", "intermediate_size"},
        std::pair{"vocabulary", "vocab_size"}, std::pair{"max_positions", "max_position_embeddings"}})
    take_size(run, ours, {at + theirs});
  if (const Written* const tied = run.find(at + "tie_word_embeddings"))
    run.builder().member("tied_embeddings", is_on(*tied), tied);
}

}  // namespace

LaunchedRun read_llm_foundry(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "llm-foundry", "pytorch-fsdp-2023");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  take_global(run, scale, {"global_train_batch_size", "variables.global_train_batch_size"});
  take_micro(run, scale, {"device_train_microbatch_size", "variables.device_train_microbatch_size"});
  if (const Written* const automatic = run.find("device_train_microbatch_size");
      automatic != nullptr && text_of_values(*automatic) == "auto")
    builder.unresolved("device_train_microbatch_size: auto is the largest that fits: give --micro-batch",
                       automatic->at);
  take_sequence(
      run, {"max_seq_len", "variables.max_seq_len", "model.max_seq_len", "train_loader.dataset.max_seq_len"});
  const std::string implementation = run.text("model.attn_config.attn_impl");
  if (implementation == "triton") builder.use_software("llm-foundry-2023");
  const Written* const pretrained = run.find({"model.pretrained_model_name_or_path"});
  if (pretrained != nullptr && !run.has("model.d_model")) {
    name_model_of(*pretrained, builder);
    take_overridden_sizes(run);
  } else if (run.has("model.d_model")) {
    const std::int64_t width = run.count("model.d_model").value_or(0);
    take_size(run, "hidden", {"model.d_model"});
    take_size(run, "layers", {"model.n_layers"});
    take_size(run, "heads", {"model.n_heads"});
    take_size(run, "key_value_heads", {"model.attn_config.kv_n_heads"});
    take_size(run, "vocabulary", {"model.vocab_size"});
    take_size(run, "max_positions", {"model.max_seq_len"});
    const auto hidden = run.count("model.ffn_config.ffn_hidden_size");
    const std::int64_t ratio = run.count("model.expansion_ratio").value_or(4);
    builder.member("feedforward", hidden.value_or(ratio * width),
                   hidden ? run.find("model.ffn_config.ffn_hidden_size") : run.find("model.expansion_ratio"));
    const std::string ffn = run.text("model.ffn_config.ffn_type");
    const bool gated = ffn.find("glu") != std::string::npos;
    builder.member("activation", gated ? "swiglu" : "gelu", run.find("model.ffn_config.ffn_type"));
    const std::string norm = run.text("model.norm_type");
    builder.member("normalization", norm.find("rms") != std::string::npos ? "rms_norm" : "layer_norm",
                   run.find("model.norm_type"));
    const bool rotary = run.on("model.attn_config.rope");
    const bool alibi = run.on("model.attn_config.alibi");
    builder.member("positions",
                   rotary  ? "rotary"
                   : alibi ? "none"
                           : "learned",
                   run.find(rotary ? "model.attn_config.rope" : "model.attn_config.alibi"));
    builder.member("linear_bias", !run.on("model.no_bias"), run.find("model.no_bias"));
    const Written* const tied = run.find("model.tie_word_embeddings");
    builder.member("tied_embeddings", tied == nullptr || is_on(*tied), tied);
    builder.member("vocabulary_multiple", 1, nullptr);
    builder.member("hidden_dropout", false, nullptr);
    builder.member("attention_dropout", false, nullptr);
    builder.member("sequence",
                   run.count({"max_seq_len", "model.max_seq_len", "variables.max_seq_len"}).value_or(2048),
                   nullptr);
    if (run.has("model.ffn_config.moe_num_experts")) {
      take_size(run, "experts/count", {"model.ffn_config.moe_num_experts"});
      take_size(run, "experts/per_token", {"model.ffn_config.moe_top_k"});
      member_if(builder, "experts/per_token", 1);
    }
  }
  std::vector<Written> fsdp_keys = run.below("fsdp_config");
  if (fsdp_keys.empty()) fsdp_keys = run.below("parallelism_config.fsdp");
  if (fsdp_keys.empty()) {
    builder.set("data_sharding", "none", nullptr);
    builder.imply("fsdp_config is not written: data-parallel ranks are whole replicas (DDP)");
  } else {
    TreeRun fsdp(std::move(fsdp_keys), builder);
    const std::string software = implementation == "triton" ? "llm-foundry-2023" : "pytorch-fsdp-2023";
    if (const Written* const mixed = fsdp.find("mixed_precision")) {
      builder.set("gradient_dtype", lower_case(text_of_values(*mixed)) == "pure" ? "bf16" : "fp32", mixed);
    }
    const Written* const host = fsdp.find("activation_cpu_offload");
    take_fsdp(fsdp, 1, scale);
    builder.use_software(software);
    if (host != nullptr && is_on(*host) && builder.value("recompute") == "full")
      builder.set("offload_modules", "layer_input", host);
    else if (host != nullptr && is_on(*host))
      builder.leave_out(*host, "activations on the host, which saves more GPU memory than is counted");
  }
  // transformers loads the weights in this dtype, or the model is converted to it [llm-foundry,
  // scripts/train/train.py, model.to(dtype=torch.bfloat16)], and the optimizer steps them.
  const Written* dtype = run.find("model.config_overrides.torch_dtype");
  if (dtype != nullptr && text_of_values(*dtype).find("16") == std::string::npos) dtype = nullptr;
  if (const Written* const master = run.find("model.master_weights_dtype"); master != nullptr) {
    constexpr std::array<std::string_view, 4> halves{"bf16", "bfloat16", "f16", "float16"};
    if (contains(halves, std::string_view(text_of_values(*master)))) dtype = master;
  }
  if (dtype != nullptr) {
    step_loaded_weights(dtype, builder);
    builder.imply("weights are of 16 bits and the optimizer steps them: no fp32 main parameters", dtype);
  }
  if (!builder.value("recompute")) builder.set("recompute", "none", nullptr);
  if (const Written* const precision = run.find("precision")) {
    const std::string name = text_of_values(*precision);
    if (name == "fp32")
      builder.take_fp32_as_bf16(precision);
    else
      builder.set("precision", name.find("fp8") != std::string::npos ? "fp8_delayed" : "bf16", precision);
  }
  if (const Written* const optimizer = run.find({"optimizer.name", "variables.optimizer.name"}))
    take_optimizer(*optimizer, builder);
  if (run.has_below("model.peft_config")) {
    builder.set("lora_rank", std::to_string(run.count("model.peft_config.r").value_or(16)),
                run.find("model.peft_config.r"));
    if (const Written* const targets = run.find("model.peft_config.target_modules"))
      take_lora_targets(*targets, builder);
  }
  static constexpr LaunchKey keys[] = {
      {"variables.*"},
      {"tokenizer.*"},
      {"train_loader.*"},
      {"eval_loader.*"},
      {"eval_loaders.*"},
      {"icl_*"},
      {"load_*"},
      {"scheduler.*"},
      {"optimizer.*"},
      {"algorithms.*"},
      {"callbacks.*"},
      {"loggers.*"},
      {"max_duration"},
      {"max_seq_len"},
      {"precision"},
      {"device_eval_batch_size"},
      {"console_*"},
      {"progress_bar"},
      {"data_*"},
      {"model.peft_config.*"},
      {"model.config_overrides.attn_config.attn_impl"},
      {"model.config_overrides.*", LaunchUse::unmodelled, "other sizes than the model's"},
      {"model.*"},
      {"knowledge_distillation.teacher*", LaunchUse::unmodelled,
       "a teacher, a second model beside the first"},
      {"knowledge_distillation.*"},
      {"compile_config*", LaunchUse::unmodelled, "compiled layers"},
      {"parallelism_config.*", LaunchUse::unmodelled, "other parallelism"},
      {"autoresume"},
      {"python_log_level"},
      {"dist_timeout"},
      {"max_split_size_mb"},
      {"expandable_segments", LaunchUse::on, "memory.expandable_segments"},
      {"profiler.*"},
      {"name"},
      {"image"},
      {"compute.*"},
      {"integrations.*"},
      {"command"},
      {"parameters.*"},
      {"scheduling.*"},
      {"device_train_microbatch_size"},
  };
  if (scale.global && !scale.micro)
    builder.assume("device_train_microbatch_size is not known: a microbatch is one sequence");
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
