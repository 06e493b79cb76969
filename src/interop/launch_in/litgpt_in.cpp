// litgpt: fine-tuning on one GPU, or on several with FSDP1 of Lightning Fabric, and pretraining
// [Lightning-AI/litgpt, litgpt/finetune/full.py and lora.py, litgpt/pretrain.py, litgpt/args.py].
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"

namespace headroom {
namespace {

// The model that a checkpoint's folder is named after: "checkpoints/meta-llama/Llama-3.2-1B".
void name_by_folder(TreeRun& run) {
  const Written* const name = run.find({"model_name", "checkpoint_dir", "model.name"});
  if (name == nullptr) return;
  std::string text = text_of_values(*name);
  while (text.ends_with('/')) text.pop_back();
  text.erase(0, text.rfind('/') + 1);
  name_model_of(text, name, name->at.file, run.builder());
}

void take_litgpt_sizes(TreeRun& run) {
  RunBuilder& builder = run.builder();
  take_size(run, "hidden", {"model.n_embd", "model_config.n_embd"});
  take_size(run, "layers", {"model.n_layer", "model_config.n_layer"});
  take_size(run, "heads", {"model.n_head", "model_config.n_head"});
  take_size(run, "key_value_heads", {"model.n_query_groups", "model_config.n_query_groups"});
  take_size(run, "head_size", {"model.head_size", "model_config.head_size"});
  take_size(run, "feedforward", {"model.intermediate_size", "model_config.intermediate_size"});
  take_size(run, "vocabulary",
            {"model.padded_vocab_size", "model_config.padded_vocab_size", "model.vocab_size",
             "model_config.vocab_size"});
  take_size(run, "max_positions", {"model.block_size", "model_config.block_size"});
  take_size(run, "sequence", {"model.block_size", "model_config.block_size"});
  const auto named = [&](std::string_view suffix) {
    return run.find({"model." + std::string(suffix), "model_config." + std::string(suffix)});
  };
  const Written* const mlp = named("mlp_class_name");
  const bool gated = mlp != nullptr && text_of_values(*mlp).find("GptNeox") == std::string::npos;
  builder.member("activation", gated ? "swiglu" : "gelu", mlp);
  const Written* const norm = named("norm_class_name");
  builder.member("normalization",
                 norm != nullptr && text_of_values(*norm) == "RMSNorm" ? "rms_norm" : "layer_norm", norm);
  const Written* const bias = named("bias");
  builder.member("linear_bias", bias == nullptr || is_on(*bias), bias);
  const Written* const parallel = named("parallel_residual");  // on by default [litgpt/config.py]
  builder.member("residual", parallel == nullptr || is_on(*parallel) ? "parallel" : "sequential", parallel);
  builder.member("positions", "rotary", nullptr);
  builder.member("hidden_dropout", false, nullptr);
  builder.member("attention_dropout", false, nullptr);
  const Written* const tied = run.find("train.tie_embeddings");
  builder.member("tied_embeddings", tied != nullptr && is_on(*tied), tied);
  // [litgpt/config.py, Config.__post_init__]
  const bool padded = named("padded_vocab_size") != nullptr;
  const Written* const multiple = named("padding_multiple");
  const auto stated = multiple == nullptr ? std::nullopt : whole_count(text_of_values(*multiple));
  builder.member("vocabulary_multiple", padded ? 1 : stated.value_or(512), multiple);
  if (const auto hidden = run.count({"model.n_embd", "model_config.n_embd"}))
    member_if(builder, "feedforward", 4 * std::min(*hidden, std::int64_t{1} << 40));
  const Written* const experts = named("n_expert");
  if (experts != nullptr && !is_zero(*experts)) {
    take_size(run, "experts/count", {"model.n_expert", "model_config.n_expert"});
    take_size(run, "experts/per_token", {"model.n_expert_per_token", "model_config.n_expert_per_token"});
    take_size(run, "experts/feedforward",
              {"model.moe_intermediate_size", "model_config.moe_intermediate_size"});
    member_if(builder, "experts/per_token", 1);
  }
  if (const Written* const latent = named("latent_attention"); latent != nullptr && !is_null(*latent))
    builder.leave_out(*latent, "latent attention: heads are read as those of multi-head attention");
}

// Linears with adapters: of these defaults, which are those of litgpt/finetune/lora.py.
void take_litgpt_adapters(TreeRun& run) {
  RunBuilder& builder = run.builder();
  builder.set("lora_rank", std::to_string(run.count("lora_r").value_or(8)), run.find("lora_r"));
  if (const Written* const dropout = run.find("lora_dropout"))
    builder.set("lora_dropout", text_of_values(*dropout), dropout);
  default_lora_dropout(run, nullptr);
  std::string targets;
  for (const auto& [name, linears, by_default] :
       {std::tuple{"lora_query", "q_proj", true}, std::tuple{"lora_key", "k_proj", false},
        std::tuple{"lora_value", "v_proj", true}, std::tuple{"lora_projection", "o_proj", false},
        std::tuple{"lora_mlp", "gate_proj,up_proj,down_proj", false}}) {
    const Written* const setting = run.find(name);
    if (setting == nullptr ? by_default : is_on(*setting))
      targets += (targets.empty() ? "" : ",") + std::string(linears);
  }
  const Written* const query = run.find("lora_query");
  if (targets.empty() && query != nullptr) return builder.problem(*query, "leaves no linear with an adapter");
  builder.set("lora_targets", targets, query);
  if (const Written* const head = run.find("lora_head"); head != nullptr && is_on(*head))
    builder.leave_out(*head, "an adapter of the output layer");
  const Written* const quantize = run.find("quantize");
  const std::string kind = quantize == nullptr ? "" : text_of_values(*quantize);
  if (kind.starts_with("bnb.nf4"))
    builder.set("base_dtype", kind == "bnb.nf4-dq" ? "nf4" : "nf4_single", quantize);
  else if (kind == "bnb.int8-training")
    builder.set("base_dtype", "int8", quantize);
  else if (quantize != nullptr && !is_null(*quantize))
    builder.leave_out(*quantize, "frozen linears of these bits: they are counted in bf16");
}

// Half-precision weights that the optimizer steps, or FP32 ones.
void take_litgpt_weights(TreeRun& run, bool pretrains, bool adapts) {
  RunBuilder& builder = run.builder();
  const Written* const precision = run.find("precision");
  const bool stated = precision != nullptr && !is_null(*precision);
  const std::string text = stated ? text_of_values(*precision) : "bf16-mixed";
  builder.set("precision", "bf16", precision);
  if (!stated) builder.imply("precision is bf16-mixed where it is not written");
  if (text == "bf16-true" || text == "16-true") {
    step_loaded_weights(precision, builder);
  } else {
    for (const char* const field : {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype"})
      builder.set(field, "fp32", precision);
    if (!text.ends_with("-mixed")) builder.leave_out(*precision, "FP32 products: BF16 is taken");
    if (adapts)
      builder.assume(
          fmt::format("with {}, litgpt keeps frozen weights in FP32: 2 bytes of each are not counted", text));
  }
  if (const Written* const quantize = run.find("quantize");
      quantize != nullptr && !is_null(*quantize) && text.ends_with("-mixed"))
    builder.refuse({.fields = {"base_dtype"},
                    .rule = fmt::format("does not go with precision {}", text),
                    .source = "litgpt, finetune/lora.py, setup",
                    .written = quantize->as_written,
                    .at = quantize->at});
  if (pretrains) builder.choose("launches", "compiled", nullptr);  // pretrain.py compiles the model
}

}  // namespace

LaunchedRun read_litgpt(const TreeFile& file, const LaunchOptions& options) {
  return read_litgpt_words(flattened(file.root, file.file), LitgptCommand::by_settings, file.file, options);
}

LaunchedRun read_litgpt_words(std::vector<Written> written, LitgptCommand command, const std::string& file,
                              const LaunchOptions& options) {
  RunBuilder builder(file, "litgpt", "litgpt-2024");
  TreeRun run(last_of_each(std::move(written)), builder);
  RunScale scale;
  const bool pretrains = command == LitgptCommand::pretrain ||
                         (command == LitgptCommand::by_settings && !run.has("checkpoint_dir"));
  const bool adapts = command == LitgptCommand::lora ||
                      (command == LitgptCommand::by_settings &&
                       (run.has("lora_r") || run.has("lora_alpha") || run.has("lora_query")));
  take_global(run, scale, {"train.global_batch_size"});
  // [litgpt/finetune/full.py and lora.py, setup: train, 16 and 1 sequences; earlier lora.py had 128 and 4.
  // litgpt/pretrain.py, setup: train, 512 and 4]
  if (!run.has("train.global_batch_size")) {
    scale.global = pretrains ? 512 : 16;
    builder.set("global_batch", std::to_string(*scale.global), nullptr);
    builder.assume(fmt::format("train.global_batch_size is litgpt's default of {}{} (--global-batch N)",
                               *scale.global, pretrains ? "" : ", 128 in earlier releases"));
  }
  take_micro(run, scale, {"train.micro_batch_size"});
  take_sequence(run, {"train.max_seq_length"});
  const bool sizes = run.has("model.n_embd") || run.has("model_config.n_embd");
  if (sizes)
    take_litgpt_sizes(run);
  else
    name_by_folder(run);
  const auto devices = run.count("devices");
  scale.nodes = run.count("num_nodes").value_or(1);
  if (devices) {
    scale.devices_per_node = *devices;
    scale.devices = product_of(*devices, *scale.nodes);
    if (!scale.devices)
      builder.problem(*run.find("devices"),
                      "must be smaller: devices times num_nodes does not fit into 64 bits");
  }
  const bool one_by_default = !pretrains && !run.has("devices");  // else auto: all of a node
  const bool alone = scale.devices.value_or(one_by_default ? 1 : 2) == 1;
  if (one_by_default) scale.devices = 1;
  if (!scale.devices) builder.whole_nodes(*scale.nodes);
  // pretrain.py shards within a node [HYBRID_SHARD].
  if (pretrains && devices && *scale.nodes > 1) {
    scale.shard = *devices;
    scale.replicate = *scale.nodes;
  }
  if (!alone) {
    builder.set("data_sharding", "zero3", run.find("devices"));
    builder.imply("Fabric shards by FSDP over several GPUs", run.find("devices"));
  }
  builder.set("recompute", !alone && !pretrains ? "full" : "none", nullptr);
  if (!alone && !pretrains) builder.imply("every block is a checkpoint over several GPUs");
  if (adapts) take_litgpt_adapters(run);
  take_litgpt_weights(run, pretrains, adapts);
  if (const Written* const optimizer = run.find({"optimizer.class_path", "optimizer"}))
    take_optimizer(*optimizer, builder);
  static constexpr LaunchKey keys[] = {
      {"access_token"}, {"data*"},      {"eval.*"}, {"generate.*"}, {"initial_checkpoint_dir"},
      {"logger_name"},  {"lora_alpha"}, {"lora_*"}, {"model.*"},    {"model_config.*"},
      {"optimizer.*"},  {"out_dir"},    {"resume"}, {"seed"},       {"tokenizer_dir"},
      {"train.*"},
  };
  if (!run.has("train.micro_batch_size")) {
    scale.micro = pretrains ? 4 : 1;  // as above
    builder.set("micro_batch", std::to_string(*scale.micro), nullptr);
    builder.imply(fmt::format("train.micro_batch_size is {} where it is not written", *scale.micro));
  }
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
