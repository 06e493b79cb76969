#include "interop/launch_in/trainer_common.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "io/text.hpp"

namespace headroom {

// "fsdp_config.fsdp_offload_params" and "fsdp_config.offload_params" are one.
std::vector<Written> without_prefix(std::vector<Written> written, std::string_view prefix) {
  for (Written& setting : written) {
    if (setting.name.starts_with(prefix)) setting.name.erase(0, prefix.size());
  }
  return written;
}

void take_deepspeed_tree(std::vector<Written> written, RunScale& scale, RunBuilder& builder) {
  TreeRun run(std::move(written), builder);
  take_deepspeed(run, scale);
  run.rest(deepspeed_keys());
}

// A path beside the file, or the configuration itself.
void take_deepspeed_of(TreeRun& run, std::string_view name, RunScale& scale) {
  RunBuilder& builder = run.builder();
  if (run.has_below(name)) return take_deepspeed_tree(run.below(name), scale, builder);
  const Written* const setting = run.find({name}, "data_sharding");
  if (setting == nullptr) return;
  if (lacks_value(*setting)) return builder.refuse_empty(*setting, "data_sharding");
  if (const std::optional<TreeNode> tree = tree_beside(*setting, builder)) {
    const std::string file = text_of_values(*setting);
    take_deepspeed_tree(flattened(*tree, file), scale, builder);
    return;
  }
  builder.use_software("deepspeed-2025");
  const std::string text = text_of_values(*setting);
  const std::string stage = stage_in_name(text);
  if (stage.empty() || builder.value("data_sharding")) return;
  builder.set("data_sharding", stage, setting);
  builder.assume(
      fmt::format("{} is taken for ZeRO stage {} by its name", printable(setting->as_written), stage.back()),
      setting);
  const std::string lower = lower_case(text);
  const std::size_t offload = lower.find("offload");
  const std::string_view before = std::string_view(lower).substr(0, std::min(offload, lower.size()));
  const bool is_off = before.ends_with("no") || before.ends_with("no_") || before.ends_with("no-");
  if (offload != std::string::npos && !is_off)
    take_offload(stage == "zero3", Written{"offload", {"cpu"}, setting->as_written, setting->at, {}},
                 builder);
}

std::string stage_in_name(std::string_view name) {
  const std::string text = lower_case(name.substr(name.find_last_of('/') + 1));
  for (const char stage : {'1', '2', '3'}) {
    for (const std::string_view word :
         {"zero", "zero_", "zero-", "z", "stage", "stage_", "stage-", "config_s"}) {
      if (text.find(std::string(word) + stage) != std::string::npos) return std::string("zero") + stage;
    }
  }
  return {};
}

namespace {

void default_sequence(const TrainerNames& names, RunBuilder& builder) {
  if (names.sequence_default == 0) return assume_sequence(builder);
  builder.set("sequence", std::to_string(names.sequence_default), nullptr);
  builder.imply(
      fmt::format("{} is {} where it is not written", *names.sequence.begin(), names.sequence_default));
}

// A prompt and an answer in one sequence, each cut to its length [THUDM/ChatGLM-6B, ptuning/main.py,
// preprocess_function_train].
bool take_prompt_and_answer(TreeRun& run) {
  if (!run.has("max_source_length") || !run.has("max_target_length")) return false;
  const auto prompt = run.count({"max_source_length"}, "sequence");
  const auto answer = run.count({"max_target_length"}, "sequence");
  if (!prompt || !answer) return false;
  const Written* const from = run.find("max_target_length");
  constexpr std::int64_t most =
      std::numeric_limits<std::int32_t>::max();  // of each, so that the sum is exact
  if (*prompt < 0 || *answer < 0 || *prompt > most || *answer > most) {
    run.builder().problem(*from, fmt::format("and max_source_length must be between 0 and {}", most));
    return true;
  }
  run.builder().set("sequence", std::to_string(*prompt + *answer), from);
  run.builder().assume(fmt::format("a sequence is a prompt and its answer: {} + {} tokens", *prompt, *answer),
                       from);
  return true;
}

}  // namespace

void take_common(TreeRun& run, const TrainerNames& names, RunScale& scale) {
  RunBuilder& builder = run.builder();
  if (const Written* const model = run.find_path(names.model)) name_model_of(*model, builder);
  scale.micro = run.count(names.micro, "micro_batch");
  if (scale.micro) {
    builder.set("micro_batch", std::to_string(*scale.micro), run.find(names.micro));
  } else if (!run.is_open(names.micro)) {
    scale.micro = names.micro_default;
    builder.set("micro_batch", std::to_string(names.micro_default), nullptr);
    builder.imply(fmt::format("{} is {} where it is not written", *names.micro.begin(), names.micro_default));
  }
  scale.accumulation = run.above_zero({"gradient_accumulation_steps"}, "global_batch").value_or(1);
  if (!scale.micro) builder.accumulation(*scale.accumulation);
  if (const auto length = run.count(names.sequence, "sequence"); length && *length > 0) {
    builder.set("sequence", std::to_string(*length), run.find(names.sequence));
  } else if (!run.is_open(names.sequence) && !take_prompt_and_answer(run)) {  // else it must be given
    default_sequence(names, builder);
  }
  if (const Written* const optimizer = run.find(names.optimizer, "optimizer"))
    take_optimizer(*optimizer, builder);
  const Written* const half = run.find({"bf16", "fp16", "pure_bf16"});
  if (half != nullptr && is_on(*half)) builder.set("precision", "bf16", half);
  if (const Written* const fp16 = run.find("fp16"); fp16 != nullptr && is_on(*fp16))
    builder.imply("fp16 takes the memory and time of bf16 here: 2 bytes an element", fp16);
  if (const Written* const compiled = run.find("torch_compile"); compiled != nullptr && is_on(*compiled))
    builder.choose("launches", "compiled", compiled);
}

void take_adapter(TreeRun& run, const TrainerNames& names, bool adapter, const Written* from,
                  std::int64_t rank_default) {
  RunBuilder& builder = run.builder();
  const std::optional<std::int64_t> rank = run.count(names.lora_rank, adapter ? "lora_rank" : "");
  const Written* const dropout = run.find({"lora_dropout"});
  const Written* const targets = run.find(names.lora_targets);
  const Written* const linear = run.find("lora_target_linear");
  if (!adapter) return;
  builder.set("lora_rank", std::to_string(rank.value_or(rank_default)),
              rank ? run.find(names.lora_rank) : from);
  if (!rank && !run.is_open(names.lora_rank))
    builder.imply(fmt::format("{} is {} where it is not written", *names.lora_rank.begin(), rank_default),
                  from);
  if (dropout != nullptr) builder.set("lora_dropout", text_of_values(*dropout), dropout);
  if (linear != nullptr && is_on(*linear)) {
    builder.set("lora_targets", "all-linear", linear);
  } else if (targets != nullptr) {
    take_lora_targets(*targets, builder);
  }
}

void default_lora_dropout(TreeRun& run, const Written* from) {
  if (run.has("lora_dropout")) return;
  run.builder().set("lora_dropout", "0.05", nullptr);
  run.builder().imply("lora_dropout is 0.05 where it is not written", from);
}

void take_quantization(TreeRun& run, const TrainerNames& names, bool adapter) {
  RunBuilder& builder = run.builder();
  const Written* four = run.find({"load_in_4bit", "use_qlora", "q_lora", "use_4bit_quantization"});
  // axolotl's adapter: qlora, which needs load_in_4bit.
  if (const Written* const kind = run.find("adapter");
      four == nullptr && kind != nullptr && text_of_values(*kind) == "qlora")
    four = kind;
  const Written* const eight = run.find({"load_in_8bit", "use_8bit_quantization"});
  const Written* const bits = run.find("quantization_bit");
  const bool by_bits = bits != nullptr && text_of_values(*bits) == "4";
  // Names of LLaMA-Factory, TRL, PEFT's examples and axolotl; our own launches write them.
  const Written* const nested = run.find({"double_quantization", "use_bnb_nested_quant", "use_nested_quant",
                                          "bnb_config_kwargs.bnb_4bit_use_double_quant"});
  const char* const base = nested != nullptr && !is_on(*nested) ? "nf4_single" : "nf4";
  if (adapter && four != nullptr && is_on(*four)) builder.set("base_dtype", base, four);
  if (adapter && by_bits) builder.set("base_dtype", base, bits);
  if (adapter && eight != nullptr && is_on(*eight)) builder.set("base_dtype", "int8", eight);
  const bool by_eight = bits != nullptr && text_of_values(*bits) == "8";
  if (adapter && by_eight) builder.set("base_dtype", "int8", bits);
  // Such a checkpoint's config.json has the quantization, with nested constants, which transformers then
  // loads [transformers, quantizers/auto.py, AutoHfQuantizer.merge_quantization_configs].
  if (const Written* const model = run.find_path(names.model);
      adapter && model != nullptr && lower_case(text_of_values(*model)).ends_with("-bnb-4bit"))
    builder.set("base_dtype", "nf4", model);
  if (bits != nullptr && !by_bits && !by_eight)
    builder.leave_out(*bits, "frozen linears of these bits: they are counted in bf16");
  for (const Written* const quantized : {four, eight}) {
    if (!adapter && quantized != nullptr && is_on(*quantized) && text_of_values(*quantized) != "qlora")
      builder.leave_out(*quantized,
                        "quantized weights need adapters, and this run has none: they are counted in bf16");
  }
}

// "fsdp: full_shard auto_wrap offload" of the Trainer, as a list or a text.
void take_fsdp_words(TreeRun& run, RunScale& scale, const std::string& config_name) {
  RunBuilder& builder = run.builder();
  const Written* const words = run.find("fsdp");
  std::vector<Written> config = without_prefix(run.below(config_name), "fsdp_");
  if (const Written* const path = run.find(config_name); path != nullptr && config.empty()) {
    if (const std::optional<TreeNode> tree = tree_beside(*path, builder))
      config = without_prefix(flattened(*tree, text_of_values(*path)), "fsdp_");
  }
  std::int64_t version = 1;
  if (const auto stated = run.count("fsdp_version")) version = *stated;
  for (const Written& setting : config) {
    if (setting.name == "version") version = whole_count(text_of_values(setting)).value_or(version);
  }
  if (words != nullptr) {
    const std::string text = lower_case(text_of_values(*words));
    for (const std::string_view mode :
         {"full_shard", "shard_grad_op", "hybrid_shard_zero2", "hybrid_shard", "no_shard"}) {
      const bool stated = std::any_of(config.begin(), config.end(),
                                      [](const Written& s) { return s.name == "sharding_strategy"; });
      if (text.find(mode) == std::string::npos || stated) continue;
      config.push_back({"sharding_strategy", {std::string(mode)}, words->as_written, words->at, {}});
      break;
    }
    if (text.find("offload") != std::string::npos)
      config.push_back({"offload_params", {"true"}, words->as_written, words->at, {}});
  }
  TreeRun fsdp(std::move(config), builder);
  take_fsdp(fsdp, static_cast<int>(version), scale);
}

bool has_fsdp(const TreeRun& run, const std::string& config_name) {
  return run.has("fsdp") || run.has_below(config_name) || run.has(config_name) || run.has("fsdp_version");
}

bool has_deepspeed(const TreeRun& run) { return run.has("deepspeed") || run.has_below("deepspeed"); }

// Whether products are of 16 bits without autocast: weights are loaded so, or dequantized so. "auto" is the
// checkpoint's dtype, which is of 16 bits but for old models.
bool computes_half(TreeRun& run) {
  const std::string loaded = run.text({"torch_dtype", "dtype", "model_dtype"});
  const std::string dequantized = run.text({"bnb_4bit_compute_dtype", "param_dtype"});
  return loaded == "auto" || loaded.find("16") != std::string::npos ||
         dequantized.find("16") != std::string::npos;
}

// DeepSpeed, FSDP or neither.
void take_sharding(TreeRun& run, RunScale& scale) {
  RunBuilder& builder = run.builder();
  const bool of_trainer = builder.so_far().framework == "Hugging Face Trainer";
  if (has_deepspeed(run)) {
    take_deepspeed_of(run, "deepspeed", scale);
    if (of_trainer && !builder.value("precision") && !computes_half(run))
      builder.assume(
          "neither bf16 nor fp16 is on: FP32 under DeepSpeed is not modelled; read as BF16, which halves the "
          "activations");
    const Written* const unsloth = run.find("use_unsloth");
    if (unsloth != nullptr && is_on(*unsloth) && run.builder().value("data_sharding") == "zero3") {
      run.builder().refuse({.fields = {"data_sharding"},
                            .rule = "must be off under ZeRO stage 3",
                            .source = "LLaMA-Factory, hparams/parser.py",
                            .written = unsloth->as_written,
                            .at = unsloth->at});
    }
  } else if (has_fsdp(run, "fsdp_config")) {
    take_fsdp_words(run, scale, "fsdp_config");
  } else if (!run.builder().value("data_sharding")) {  // accelerate's configuration may say it
    const Written* const unsloth = run.find("use_unsloth");
    const bool kernels = unsloth != nullptr && is_on(*unsloth) && run.builder().value("lora_rank");
    run.builder().use_software(kernels ? "unsloth" : "hf-trainer");
    if (unsloth != nullptr && is_on(*unsloth) && !kernels)
      run.builder().leave_out(*unsloth, "unsloth's kernels without adapters");
    // [LLaMA-Factory, model/model_utils/unsloth.py, _get_unsloth_kwargs and get_unsloth_peft_model]
    if (kernels && run.builder().value("recompute") == "full")
      run.builder().set("offload_modules", "layer_input", unsloth);
  }
}

// accelerate's AcceleratorConfig, as JSON in a word or as members of the file. sync_each_batch is modelled for full
// sharding by FSDP only.
void take_accumulation(TreeRun& run) {
  constexpr std::string_view name = "gradient_accumulation_kwargs.sync_each_batch";
  const Written* const words = run.find("accelerator_config");
  const Written* sync = run.find("accelerator_config." + std::string(name));
  bool on = sync != nullptr && is_on(*sync);
  if (sync == nullptr && words != nullptr && !text_of_values(*words).starts_with("{"))
    return run.builder().leave_out(*words, "a file of accelerate's configuration");
  if (sync == nullptr && words != nullptr) {
    try {
      const TreeNode root = parse_json_tree(text_of_values(*words), words->at.file);
      for (const Written& inner : flattened(root, words->at.file)) {
        if (inner.name != name) continue;
        sync = words;
        on = is_on(inner);
      }
    } catch (const InputError&) {
      return run.builder().problem(*words, "is not JSON");
    }
  }
  if (!on) return;
  RunBuilder& builder = run.builder();
  if (builder.value("data_sharding") == "zero3" && builder.so_far().software == "hf-trainer")
    builder.set("sync_each_batch", "yes", sync);
  else
    builder.leave_out(*sync, "gradients that are reduced after every microbatch");
}

void take_model_dtype(TreeRun& run, std::string_view name) {
  const Written* const dtype = run.find(name);
  const std::string text = dtype == nullptr ? "" : text_of_values(*dtype);
  if (text.find("bf16") == std::string::npos && text.find("bfloat16") == std::string::npos) return;
  step_loaded_weights(dtype, run.builder());
  run.builder().imply("weights are loaded at 16 bits and the optimizer steps them: no fp32 main parameters",
                      dtype);
}

void step_loaded_weights(const Written* from, RunBuilder& builder) {
  builder.set("main_params_dtype", "none", from);
  if (!builder.value("exp_avg_dtype") && builder.value("optimizer").value_or("adam") == "adam") {
    builder.set("exp_avg_dtype", "bf16", from);
    builder.set("exp_avg_sq_dtype", "bf16", from);
  }
  builder.set("gradient_dtype", "bf16", from);
}

// transformers loads the weights in this dtype; AdamW steps what is loaded. FSDP makes fp32 main parameters of them, DeepSpeed its own.
void take_loaded_dtype(TreeRun& run) {
  RunBuilder& builder = run.builder();
  if (has_deepspeed(run)) return;
  const Written* dtype = run.find({"torch_dtype", "dtype", "model_dtype"});
  // axolotl loads them in the dtype that it computes in, by default BF16 [axolotl/utils/config/__init__.py,
  // normalize_config].
  const bool as_computed = dtype == nullptr && builder.so_far().framework == "axolotl";
  if (as_computed) dtype = run.find({"bf16", "bfloat16"});
  if (dtype == nullptr && !as_computed) return;
  const std::string name = dtype == nullptr ? "" : text_of_values(*dtype);
  const bool half = as_computed ? dtype == nullptr || is_on(*dtype) || name == "auto"
                                : name.find("bfloat16") != std::string::npos ||
                                      name.find("float16") != std::string::npos || name == "bf16";
  const bool sharded = builder.value("data_sharding").value_or("none") != "none";
  if (!half || sharded || builder.value("lora_rank")) return;
  step_loaded_weights(dtype, builder);
  builder.imply("weights are loaded at 16 bits and the optimizer steps them: no fp32 main parameters", dtype);
}

void take_checkpointing(TreeRun& run, const Written* setting) {
  RunBuilder& builder = run.builder();
  if (setting == nullptr) return;
  const std::string value = lower_case(text_of_values(*setting));
  if (!builder.value("recompute")) builder.set("recompute", is_on(*setting) ? "full" : "none", setting);
  if (value == "offload" || value == "unsloth" || value == "offload_disk")
    builder.set("offload_modules", "layer_input", setting);
}

// Liger's loss takes the logits of a part of the tokens at a time. Its other kernels save as much as those of the stack.
void take_liger(TreeRun& run) {
  const Written* const liger =
      run.find({"use_liger_kernel", "use_liger", "enable_liger_kernel", "liger_fused_linear_cross_entropy"});
  if (liger == nullptr || !is_on(*liger)) return;
  run.builder().choose("cross_entropy", "linear_fused", liger);
  run.builder().imply("Liger's loss holds the logits of few tokens at a time", liger);
}

// Ulysses, as DeepSpeed's [ms-swift, docs, Command-line-parameters, sequence_parallel_size].
void take_sequence_parallel(TreeRun& run, RunScale& scale) {
  const auto size = run.count({"sequence_parallel_size"}, "context_parallel");
  if (!size || *size < 2) return;
  scale.context = *size;
  run.builder().set("context_parallel", std::to_string(*size), run.find("sequence_parallel_size"));
  run.builder().set("cp_comm", "a2a", nullptr);
}

// Attention of transformers that keeps its scores [modeling_utils.py, _attn_implementation].
void take_attention(TreeRun& run) {
  const Written* eager = run.find({"attn_implementation", "attention_implementation", "attn_impl"});
  if (eager != nullptr && lower_case(text_of_values(*eager)) != "eager") eager = nullptr;
  if (const Written* const own = run.find("eager_attention"); own != nullptr && is_on(*own)) eager = own;
  if (eager != nullptr) run.builder().member("kernels/attention", "unfused", eager);
}

void count_pairs(RunScale& scale, const Written* micro, RunBuilder& builder) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (!scale.micro || *scale.micro >= most) return;
  *scale.micro *= 2;
  builder.drop("micro_batch");
  builder.set("micro_batch", std::to_string(*scale.micro), micro);
  if (scale.global && *scale.global < most) {
    *scale.global *= 2;
    builder.drop("global_batch");
    builder.set("global_batch", std::to_string(*scale.global), nullptr);
  }
  builder.imply("MBS and GBS count sequences: two for each pair");
}

void take_reference(bool adapter, RunBuilder& builder) {
  builder.set("reference_model", "yes", nullptr);
  builder.imply(adapter ? "the model without its adapters is the reference, which scores every sequence too"
                        : "a frozen copy of the model is the reference, which scores every sequence too");
}

LaunchedRun hf_like(TreeRun& run, const TrainerNames& names, bool adapter, const Written* adapter_at,
                    std::int64_t rank_default, const Written* checkpointing, std::span<const LaunchKey> table,
                    const LaunchOptions& options, RunScale scale) {
  RunBuilder& builder = run.builder();
  take_common(run, names, scale);
  if (scale.pairs) count_pairs(scale, run.find(names.micro), builder);
  const Written* const precomputed = run.find({"precompute_ref_log_probs"});
  const bool scored_before = precomputed != nullptr && is_on(*precomputed);
  if (scale.reference && !scored_before) take_reference(adapter, builder);
  take_adapter(run, names, adapter, adapter_at, rank_default);
  take_quantization(run, names, adapter);
  if (builder.value("recompute") == std::nullopt) take_checkpointing(run, checkpointing);
  take_sharding(run, scale);
  take_accumulation(run);
  take_sequence_parallel(run, scale);
  take_loaded_dtype(run);
  // take_sharding() says it of DeepSpeed.
  if (builder.so_far().framework == "Hugging Face Trainer" && !builder.value("precision") &&
      !computes_half(run) && !has_deepspeed(run))
    builder.take_fp32_as_bf16(nullptr);
  take_liger(run);
  take_attention(run);
  settle(scale, builder);
  run.rest(table);
  return builder.finish(options);
}

}  // namespace headroom
