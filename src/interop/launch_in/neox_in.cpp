// GPT-NeoX.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {

namespace {

// Layers of Mamba alone: the published model with as many of this width. Empty: none.
std::string mamba_of(TreeRun& run) {
  struct Sizes {
    std::int64_t hidden;
    std::int64_t layers;
    std::string_view name;
  };
  constexpr std::array<Sizes, 5> published{{{768, 24, "mamba-130m"},
                                            {1024, 48, "mamba-370m"},
                                            {1536, 48, "mamba-790m"},
                                            {2048, 48, "mamba-1.4b"},
                                            {2560, 64, "mamba-2.8b"}}};
  if (run.text("attention_config.0.0") != "mamba") return {};
  const auto hidden = run.count("hidden_size");
  const auto layers = run.count("num_layers");
  const auto* const found = std::find_if(published.begin(), published.end(), [&](const Sizes& it) {
    return hidden == it.hidden && layers == it.layers;
  });
  return found == published.end() ? std::string() : std::string(found->name);
}

// Renames "gas" [EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py].
std::vector<Written> with_one_accumulation(std::vector<Written> written, RunBuilder& builder) {
  const Written* first = nullptr;
  for (Written& setting : written) {
    if (setting.name == "gas") setting.name = "gradient_accumulation_steps";
    if (setting.name != "gradient_accumulation_steps") continue;
    if (first == nullptr) {
      first = &setting;
    } else {
      if (text_of_values(*first) != text_of_values(setting))
        builder.problem(setting, fmt::format("sets what {} sets too ({}): give one of them",
                                             printable(first->as_written), text_of(first->at)));
      setting.name.clear();
    }
  }
  std::erase_if(written, [](const Written& setting) { return setting.name.empty(); });
  return written;
}

// Every second layer has experts where it is not written, from the first on, and a token takes one
// [EleutherAI/gpt-neox, megatron/neox_arguments/neox_args.py, NeoXArgsModel].
void take_experts(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const auto count = run.count({"num_experts", "moe_num_experts"});
  const auto layers = run.count("num_layers");
  if (!count || *count < 2 || !layers || *layers < 1) return;
  run.size("expert_parallel", {"moe_expert_parallel_size"});
  const std::int64_t interval =
      std::max<std::int64_t>(run.count({"expert_interval", "moe_expert_interval"}).value_or(2), 1);
  constexpr std::int64_t most_layers = 10000;
  if (*layers > most_layers) return;
  Json runs = Json::array();
  for (std::int64_t i = 0; i < *layers; ++i) {
    const char* const kind = i % interval == 0 ? "moe" : "dense";
    if (runs.empty() || runs.back()["kind"] != kind) runs.push_back({{"kind", kind}, {"count", 0}});
    runs.back()["count"] = runs.back()["count"].get<std::int64_t>() + 1;
  }
  const std::string at = interval == 1 ? "experts/" : "layer_kinds/moe/experts/";
  builder.member(at + "count", *count, run.find({"num_experts", "moe_num_experts"}));
  builder.member(at + "per_token", run.count("moe_top_k").value_or(1), run.find("moe_top_k"));
  if (interval == 1) return;
  builder.drop_member("layers");
  builder.member("layers", std::move(runs), run.find({"num_experts", "moe_num_experts"}));
  builder.imply(fmt::format("1 of every {} layers has experts, starting with the first", interval),
                run.find({"num_experts", "moe_num_experts"}));
}

}  // namespace

LaunchedRun read_gpt_neox(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "GPT-NeoX", "megatron-deepspeed-2022");
  TreeRun run(with_one_accumulation(flattened(file.root, file.file), builder), builder);
  RunScale scale;
  scale.devices_per_node = run.count({"num_gpus"});
  scale.nodes = run.count({"num_nodes"});
  if (!scale.nodes && scale.devices_per_node) scale.nodes = 1;
  scale.tensor = run.size("tensor_parallel", {"model_parallel_size"});
  const auto stages = run.count("pipe_parallel_size");  // 0: without the pipeline's engine
  if (stages && *stages > 0) {
    scale.pipeline = *stages;
    builder.set("pipeline_parallel", std::to_string(*stages), run.find("pipe_parallel_size"));
  }
  scale.context = run.size("context_parallel", {"context_parallel_size"});
  if (run.has_below("zero_optimization")) {
    take_deepspeed(run, scale);
    builder.use_software("megatron-deepspeed-2022");
    if (builder.value("data_sharding") == "zero3") builder.use_software("deepspeed-2025");
  } else if (trains_in_bf16(run)) {
    shard_bf16_states(nullptr, builder);
  } else {
    builder.set("data_sharding", "none", nullptr);
    builder.imply("zero_optimization is not written: the optimizer is on every data-parallel rank");
  }
  constexpr std::string_view of_batches =
      "GPT-NeoX, megatron/neox_arguments/arguments.py, check_batch_parameters";
  take_stated_batches(run, scale, of_batches, 1);
  if (run.has("num_layers")) refuse_no_batch(run, {file.file, 0}, of_batches);
  need_gpus_for_micro(run, scale);
  if (!scale.micro && !scale.global) assume_micro(builder);
  take_sequence(run, {"seq_length"});
  if (run.on("sequence_parallel") && scale.tensor > 1)
    builder.set("sequence_parallel", "yes", run.find("sequence_parallel"));
  if (const Written* const checkpoints = run.find("checkpoint_activations")) {
    builder.set("recompute", is_on(*checkpoints) ? "full" : "none", checkpoints);
    const auto every = run.count("checkpoint_num_layers");
    if (is_on(*checkpoints) && every && *every > 1) {
      builder.set("recompute_layers", std::to_string(*every), run.find("checkpoint_num_layers"));
      builder.set("recompute_method", "uniform", nullptr);
    }
    if (is_on(*checkpoints) && scale.tensor > 1) {
      take_switch(run, "partition_activations", "distribute_saved_activations", "yes");
    } else if (run.on("partition_activations")) {
      builder.imply("partition_activations does nothing at model-parallel-size 1",
                    run.find("partition_activations"));
    }
    if (is_on(*checkpoints)) take_switch(run, "checkpoint_in_cpu", "offload_modules", "layer_input");
  }
  for (const std::string_view name : {"fp16.enabled", "bf16.enabled", "fp16.fp16", "precision"}) {
    const Written* const half = run.find(name);
    if (half == nullptr || !is_on(*half) || builder.value("precision") || text_of_values(*half) == "fp32")
      continue;
    builder.set("precision", "bf16", half);
    if (name.starts_with("fp16") || text_of_values(*half) == "fp16")
      builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", half);
  }
  // With ZeRO, DeepSpeed sums gradients in the model's dtype; GPT-NeoX sets no other
  // [deepspeed/runtime/engine.py, get_data_types; megatron/neox_arguments/arguments.py, calculate_derived].
  const bool of_zero = run.has_below("zero_optimization") && builder.value("data_sharding") != "none";
  if (of_zero && builder.value("precision") == "bf16" && !builder.value("gradient_dtype")) {
    builder.set("gradient_dtype", "bf16", nullptr);
    builder.imply(
        "gradients are summed in BF16: DeepSpeed's ZeRO uses the model's dtype unless data_types is set");
  }
  if (!builder.value("precision")) builder.take_fp32_as_bf16(run.find("precision"));
  if (const std::string mamba = mamba_of(run); !mamba.empty()) {
    builder.name_model(mamba, run.find("attention_config.0.0"));
    builder.imply(fmt::format("these layers are those of {}, with its vocabulary", mamba),
                  run.find("attention_config.0.0"));
  } else if (run.has("num_layers") && run.has("hidden_size")) {
    const std::int64_t hidden = run.count("hidden_size").value_or(0);
    take_size(run, "hidden", {"hidden_size"});
    take_size(run, "layers", {"num_layers"});
    take_size(run, "heads", {"num_attention_heads"});
    take_size(run, "key_value_heads", {"num_kv_heads"});
    take_size(run, "max_positions", {"max_position_embeddings"});
    builder.member("sequence", run.count("seq_length").value_or(2048), run.find("seq_length"));
    const std::string kind = lower_case(run.text({"activation"}));
    const Written* const type = run.find("mlp_type");
    const std::string mlp = type == nullptr ? "" : lower_case(text_of_values(*type));
    const bool gated = kind == "swiglu" || kind == "geglu" || mlp == "llama" || mlp == "gated";
    if (!gated && !mlp.empty() && mlp != "regular")
      builder.leave_out(*type, "read as an MLP of two matrices");
    const auto stated = run.count({"intermediate_size", "ffn_hidden_size"});
    std::int64_t width = stated.value_or(4 * hidden);
    // LLaMAParallelMLP takes the size as it is [megatron/model/transformer.py].
    if (gated && !(stated && mlp == "llama")) {
      // megatron/model/transformer.py, ParallelMLP: a third of the size for each of three matrices, to a multiple of 256.
      const std::int64_t multiple =
          std::clamp<std::int64_t>(run.count("mlp_multiple_of").value_or(256), 1, std::int64_t{1} << 20);
      width = ((stated ? width : 2 * width) / 3 + multiple - 1) / multiple * multiple;
      builder.imply(fmt::format("a gated MLP of GPT-NeoX is {} wide: a third of intermediate_size (8 x "
                                "hidden_size where it is not written), to a multiple of {}",
                                width, multiple),
                    run.find({"intermediate_size"}));
    }
    builder.member("feedforward", width,
                   stated ? run.find({"intermediate_size", "ffn_hidden_size"}) : nullptr);
    if (!stated && !gated) builder.imply("the MLP is 4 x hidden_size where it is not written");
    builder.member("activation", gated ? "swiglu" : "gelu", run.find("activation"));
    const std::string norm = lower_case(run.text("norm"));
    builder.member("normalization", norm == "rmsnorm" || norm == "te_rmsnorm" ? "rms_norm" : "layer_norm",
                   run.find("norm"));
    const std::string positions = lower_case(run.text("pos_emb"));
    builder.member("positions",
                   positions == "rotary"                         ? "rotary"
                   : positions == "alibi" || positions == "none" ? "none"
                                                                 : "learned",
                   run.find("pos_emb"));
    const bool biased = !run.has("use_bias_in_attn_linear") || run.on("use_bias_in_attn_linear");
    builder.member("linear_bias", biased, run.find("use_bias_in_attn_linear"));
    builder.member("tied_embeddings", !run.on("no_weight_tying"), run.find("no_weight_tying"));
    for (const auto& [name, path] : {std::pair{"hidden_dropout", "hidden_dropout"},
                                     std::pair{"attention_dropout", "attention_dropout"}}) {
      const Written* const rate = run.find(name);
      const std::string text = rate == nullptr ? "" : text_of_values(*rate);
      builder.member(path, rate != nullptr && text.find_first_not_of("0.") != std::string::npos, rate);
    }
    if (run.on("qk_norm") || run.on("use_qk_layernorm"))
      builder.member("qk_norm", "per_head", run.find({"qk_norm", "use_qk_layernorm"}));
    if (run.on("gpt_j_residual")) builder.member("residual", "parallel", run.find("gpt_j_residual"));
    const auto divisor = run.count("make_vocab_size_divisible_by");
    builder.member("vocabulary_multiple", divisor.value_or(128), run.find("make_vocab_size_divisible_by"));
    const std::string tokenizer = run.text("tokenizer_type");
    std::int64_t vocabulary = 50257;
    if (tokenizer.starts_with("HF")) vocabulary = 50277;  // 20B_tokenizer.json
    if (tokenizer.starts_with("SPM") || tokenizer.starts_with("Llama")) vocabulary = 32000;
    if (tokenizer.starts_with("Llama3")) vocabulary = 128256;
    if (const auto size = run.count({"padded_vocab_size", "vocab_size"}))
      vocabulary = *size;
    else
      builder.assume(fmt::format("the vocabulary is that of the tokenizer, {} ({})", vocabulary,
                                 tokenizer.empty() ? "GPT2BPETokenizer" : tokenizer));
    builder.member("vocabulary", vocabulary, nullptr);
    take_experts(run);
    if (scale.tensor > 1 && run.count({"num_experts", "moe_num_experts"}).value_or(0) > 1) {
      builder.set("sequence_parallel", "yes", nullptr);
      builder.assume("experts under TP are priced with sequence parallelism, which GPT-NeoX does not need");
    }
  } else {
    builder.assume(
        "the file has no num_layers and hidden_size: it goes with another that has the model; give --model");
  }
  // [[["flash"], 40]]: kinds of attention, in turn, and for how many layers.
  if (const Written* const kinds = run.find("attention_config.0.0"); kinds != nullptr) {
    const std::string names = lower_case(text_of_values(*kinds));
    const bool as_read = names == "global" || (names == "mamba" && !builder.so_far().model_name.empty());
    if (names.find("flash") != std::string::npos && run.has("hidden_size"))
      builder.member("kernels/attention", "flash", kinds);
    else if (as_read)
      builder.idle(*kinds);
    else
      builder.leave_out(*kinds, "attention of other kinds: every layer attends to the whole sequence");
  }
  if (const Written* const fused = run.find("scaled_upper_triang_masked_softmax_fusion");
      fused != nullptr && !is_on(*fused) && run.has("hidden_size"))
    builder.member("kernels/softmax", "unfused", fused);
  static constexpr LaunchKey keys[] = {
      {"attention_config*"},
      {"monitor_config*"},
      {"comms_config*"},
      {"load"},
      {"seq_parallel_communication_data_type"},
      {"bias_gelu_fusion"},
      {"rotary_*"},
      {"rope_fusion"},
      {"layernorm_fusion"},
      {"rmsnorm_fusion"},
      {"output_layer_parallelism"},
      {"init_method"},
      {"output_layer_init_method"},
      {"synchronize_each_layer"},
      {"data_*"},
      {"distributed_backend"},
      {"warmup"},
      {"min_lr"},
      {"attention_softmax_in_fp32"},
      {"mlp_multiple_of"},
      {"use_bias_in_norms"},
      {"use_bias_in_mlp"},
      {"gpt_j_tied"},
      {"vocab_file"},
      {"merge_file"},
      {"launcher"},
      {"deepspeed*"},
      {"comment"},
      {"hostfile"},
      {"is_pipe_parallel"},
      {"train_iters"},
      {"iteration"},
      {"git_hash"},
      {"finetune"},
      {"optimizer.*"},
      {"checkpoint*"},
      {"partition_activations"},
      {"contiguous_checkpointing"},
      {"memory_profiling*"},
      {"tokenizer_type"},
      {"moe_*"},
      {"sliding_window_width", LaunchUse::unmodelled, "sliding-window attention"},
      {"mamba_*", LaunchUse::unmodelled, "Mamba layers"},
      {"lora*", LaunchUse::unmodelled, "adapters"},
      {"pipe_partition_method", LaunchUse::unmodelled, "how layers are cut into stages"},
      {"zero_optimization.allgather_bucket_size", LaunchUse::unmodelled, "buckets of gathers"},
      {"zero_optimization.*"},
      {"fp16.*"},
      {"bf16.*"},
      {"flops_profiler*"},
      {"data_types.*"},
      {"sparsity_config.*"},
      {"bias_dropout_fusion"},
      {"hidden_size"},
      {"use_*"},
      {"extra_save_iters"},
      {"gradient_clipping"},
      {"steps_per_print"},
      {"wall_clock_breakdown"},
      {"scheduler.*"},
      {"weight_decay"},
      {"norm*"},
      {"layernorm_epsilon"},
      {"rms_norm_epsilon"},
      {"precision"},
  };
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
