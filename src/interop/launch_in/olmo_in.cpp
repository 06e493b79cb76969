// OLMo, before OLMo-core: a model's sizes, a batch and FSDP1 [allenai/OLMo, olmo/config.py; its defaults are taken].
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_parts.hpp"

namespace headroom {
namespace {

void take_olmo_model(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const auto size = [&](std::string_view path, const char* name, std::int64_t fallback) {
    const Written* const stated = run.find(name);
    for (const Written& inner : run.below(name)) builder.problem(inner, "must be a whole number above 0");
    builder.member(path, run.above_zero({name}).value_or(fallback), stated);
  };
  size("hidden", "model.d_model", 768);
  size("layers", "model.n_layers", 12);
  size("heads", "model.n_heads", 12);
  if (run.on("model.multi_query_attention"))
    builder.member("key_value_heads", 1, run.find("model.multi_query_attention"));
  else
    take_size(run, "key_value_heads", {"model.n_kv_heads"});
  const Written* const activation = run.find("model.activation_type");
  const std::string function = activation == nullptr ? "swiglu" : text_of_values(*activation);
  const bool gated = function == "swiglu";
  if (!gated && function != "gelu" && function != "relu")
    builder.problem(*activation, "must be swiglu, gelu or relu");
  builder.member("activation", function, activation);
  if (const Written* const mamba = run.find("model.model_name"); mamba != nullptr)
    builder.problem(*mamba, "is of a fork: OLMo's own layers alone are read");
  const std::int64_t hidden = run.count("model.d_model").value_or(768);
  const Written* const stated = run.find("model.mlp_hidden_size");
  const Written* const ratio = run.find("model.mlp_ratio");
  const auto by_ratio = product_of(run.count("model.mlp_ratio").value_or(4), hidden);
  if (!by_ratio)
    builder.problem(*(ratio != nullptr ? ratio : run.find("model.d_model")),
                    "must be smaller: d_model times mlp_ratio does not fit into 64 bits");
  const std::int64_t width = run.count("model.mlp_hidden_size").value_or(by_ratio.value_or(hidden));
  builder.member("feedforward", gated ? width / 2 : width, stated);
  if (gated)
    builder.imply(fmt::format("mlp_hidden_size counts both halves of SwiGLU: the MLP is {} wide", width / 2),
                  stated);
  const std::string norm = run.text("model.layer_norm_type");
  builder.member("normalization", norm == "rms" ? "rms_norm" : "layer_norm",
                 run.find("model.layer_norm_type"));
  const bool rotary = run.on("model.rope");
  const bool alibi = run.on("model.alibi");
  builder.member("positions",
                 rotary  ? "rotary"
                 : alibi ? "alibi"
                         : "learned",
                 run.find(alibi ? "model.alibi" : "model.rope"));
  const Written* const bias = run.find("model.include_bias");
  builder.member("linear_bias", bias == nullptr || is_on(*bias), bias);
  if (run.on("model.attention_layer_norm"))
    builder.member("qk_norm", "full", run.find("model.attention_layer_norm"));
  const Written* const tied = run.find("model.weight_tying");
  builder.member("tied_embeddings", tied == nullptr || is_on(*tied), tied);
  size("vocabulary",
       run.find("model.embedding_size") != nullptr ? "model.embedding_size" : "model.vocab_size", 50304);
  builder.member("vocabulary_multiple", 1, nullptr);
  size("max_positions", "model.max_sequence_length", 1024);
  size("sequence", "model.max_sequence_length", 1024);
  for (const auto& [member, name] : {std::pair{"attention_dropout", "model.attention_dropout"},
                                     std::pair{"hidden_dropout", "model.residual_dropout"}}) {
    const Written* const dropout = run.find(name);
    builder.member(member, dropout == nullptr || !is_zero(*dropout), dropout);
  }
  const Written* const block = run.find("model.block_type");
  if (block != nullptr && text_of_values(*block) == "parallel")
    builder.leave_out(*block, "attention and MLP in parallel: the MLP is modelled after attention");
  const Written* const flash = run.find("model.flash_attention");
  if (flash != nullptr && !is_on(*flash) && alibi) builder.member("kernels/attention", "unfused", flash);
}

void take_checkpoints_of_olmo(TreeRun& run) {
  RunBuilder& builder = run.builder();
  const Written* const checkpoints = run.find("activation_checkpointing");
  const std::string which = checkpoints == nullptr ? "" : lower_case(text_of_values(*checkpoints));
  constexpr std::array<std::string_view, 4> whole{"whole_layer", "true", "yes", "on"};
  constexpr std::array<std::string_view, 5> none{"", "null", "false", "no", "off"};
  const std::string_view word = which;
  builder.set("recompute", contains(whole, word) ? "full" : "none", checkpoints);
  if (which.starts_with("one_in_") || which == "fine_grained" || which.find("_in_") != std::string::npos)
    builder.leave_out(
        *checkpoints,
        "checkpoints of some layers or of parts of a layer: no layer is recomputed in the model");
  else if (!contains(whole, word) && !contains(none, word))
    builder.problem(*checkpoints,
                    "must be whole_layer, one_in_two, one_in_three, one_in_four or fine_grained");
}

}  // namespace

LaunchedRun read_olmo(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "OLMo", "pytorch-fsdp-2023");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  take_global(run, scale, {"global_train_batch_size"});
  take_micro(run, scale, {"device_train_microbatch_size"});
  const auto or_default = [&](std::optional<std::int64_t>& value, const char* field, const char* name,
                              std::int64_t usual) {
    if (value || run.is_open({name})) return;
    value = usual;
    builder.set(field, std::to_string(usual), nullptr);
    builder.imply(fmt::format("{} is {} where it is not written", name, usual));
  };
  or_default(scale.global, "global_batch", "global_train_batch_size", 512);
  or_default(scale.micro, "micro_batch", "device_train_microbatch_size", 16);
  take_olmo_model(run);
  take_sequence(run, {"model.max_sequence_length"});
  const std::string strategy = run.text("distributed_strategy");
  if (strategy == "ddp" || strategy == "single") {
    plain_data_parallel(builder);
  } else {
    const Written* const precision = run.find("fsdp.precision");
    const bool mixed = precision != nullptr && text_of_values(*precision) == "mixed";
    TreeRun fsdp(run.below("fsdp"), builder);
    fsdp.find({"precision"});
    fsdp.find({"wrapping_strategy"});
    take_fsdp(fsdp, 1, scale);
    builder.use_software("pytorch-fsdp-2023");
    builder.set("gradient_dtype", mixed ? "fp32" : "bf16", precision);
  }
  take_checkpoints_of_olmo(run);
  builder.set("precision", "bf16", run.find("precision"));
  if (run.text("precision") == "fp32")
    builder.leave_out(*run.find("precision"), "FP32 products: BF16 is taken");
  if (const Written* const optimizer = run.find("optimizer.name")) take_optimizer(*optimizer, builder);
  if (const Written* const compiled = run.find({"compile.fullgraph", "compile.mode", "compile.backend"}))
    builder.choose("launches", "compiled", compiled);
  static constexpr LaunchKey keys[] = {
      {"compile*"},
      {"data.*"},
      {"ddp.*"},
      {"device_eval_batch_size"},
      {"distributed_strategy"},
      {"dry_run"},
      {"evaluators*"},
      {"fused_loss", LaunchUse::unmodelled, "a loss of flash-attention's"},
      {"fsdp.*"},
      {"gen1_gc_interval"},
      {"max_duration"},
      {"model.*"},
      {"optimizer.*"},
      {"precision"},
      {"remote_save_folder"},
      {"scheduler.*"},
      {"softmax_auxiliary_loss*"},
      {"speed_monitor.*"},
      {"stop_at"},
      {"time_limit"},
      {"tokenizer.*"},
      {"wandb.*"},
  };
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
