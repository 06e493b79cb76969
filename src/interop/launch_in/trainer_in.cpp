// The Trainer of transformers and trl, and LLaMA-Factory.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/core_parts.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_flags.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// fp16 and bf16 together, which TrainingArguments refuses.
void refuse_two_dtypes(TreeRun& run) {
  const Written* const brain = run.find("bf16");
  const Written* const half = run.find("fp16");
  const auto is = [](const Written* setting) {
    return setting != nullptr && is_on(*setting) && text_of_values(*setting) != "auto";
  };
  if (!is(brain) || !is(half)) return;
  run.builder().refuse({.fields = {"precision"},
                        .rule = "at most one of bf16 and fp16 may be on",
                        .source = "Hugging Face transformers, training_args.py",
                        .written = half->as_written,
                        .at = half->at});
}

// A program with DeepSpeed's engine and without a Trainer is told its configuration as --deepspeed_config FILE.
const Written* engine_file(const std::vector<Written>& written) {
  const auto found = std::find_if(written.begin(), written.end(), [](const Written& setting) {
    return setting.name == "deepspeed" && (setting.as_written.starts_with("--deepspeed_config") ||
                                           setting.as_written.starts_with("--deepspeed-config"));
  });
  return found == written.end() ? nullptr : &*found;
}

// Adds the microbatch of the engine's configuration, under the Trainer's name.
void add_engine_batch(TrainerLaunch& launch, RunBuilder& builder) {
  const Written* const file = engine_file(launch.written);
  if (file == nullptr) return;
  builder.use_framework("DeepSpeed");
  const bool stated = std::any_of(launch.written.begin(), launch.written.end(), [](const Written& setting) {
    return setting.name.starts_with("per_device_train_batch");
  });
  RunBuilder apart(builder.so_far().framework, "", "");
  const std::optional<TreeNode> tree = stated ? std::nullopt : tree_beside(*file, apart);
  if (!tree) return;
  const std::vector<Written> config = flattened(*tree, text_of_values(*file));
  const auto find = [&](std::string_view name) {
    const auto found =
        std::find_if(config.begin(), config.end(), [&](const Written& it) { return it.name == name; });
    return found == config.end() ? nullptr : &*found;
  };
  const auto count = [&](std::string_view name) {
    const Written* const setting = find(name);
    return setting == nullptr ? std::nullopt : whole_count(text_of_values(*setting));
  };
  const auto batch = count("train_batch_size");
  const auto micro = count("train_micro_batch_size_per_gpu");
  const Written* from = find("train_micro_batch_size_per_gpu");
  std::int64_t sequences = micro.value_or(1);
  if (!micro && batch && launch.devices) {
    from = find("train_batch_size");
    const std::int64_t shares = std::max<std::int64_t>(
        *launch.devices * count("gradient_accumulation_steps").value_or(1) /
            std::max<std::int64_t>(count("tensor_parallel.autotp_size").value_or(1), 1),
        1);
    sequences = std::max<std::int64_t>(*batch / shares, 1);
    builder.imply(fmt::format("a microbatch is train_batch_size / (accumulation x DP) = {} / {} = {}", *batch,
                              shares, sequences),
                  from);
  }
  if (!micro && !batch)
    builder.refuse({.fields = {"micro_batch"},
                    .rule = "needs train_batch_size or train_micro_batch_size_per_gpu",
                    .source = "DeepSpeed, deepspeed/runtime/config.py",
                    .written = file->as_written,
                    .at = file->at});
  const Written& origin = from == nullptr ? *file : *from;
  launch.written.push_back(
      {"per_device_train_batch_size", {std::to_string(sequences)}, origin.as_written, origin.at, {}});
}

// What a program's launcher says: its GPUs, and the configuration of accelerate.
RunScale scale_of_launch(TrainerLaunch& launch, RunBuilder& builder) {
  builder.open_conditions(launch.open_conditions);
  for (const std::vector<Written>* const list : {&launch.written, &launch.accelerate}) {
    for (const Written& setting : *list) {
      if (setting.as_written.find(default_of) != std::string::npos)
        builder.imply(fmt::format("{} is {}", setting.as_written, text_of_values(setting)));
    }
  }
  RunScale scale{.pairs = launch.pairs, .reference = launch.reference};
  if (!launch.accelerate.empty()) {
    TreeRun accelerate(std::move(launch.accelerate), builder);
    take_accelerate(accelerate, scale);
    refuse_parallelism(accelerate, {.devices = launch.devices ? launch.devices : scale.devices});
  }
  if (launch.devices) {
    scale.devices = launch.devices;
    scale.devices_per_node = launch.devices_per_node;
    scale.nodes = std::nullopt;
  }
  return scale;
}

// Queries and values, which PEFT adapts of such models where trl is told no linears
// [huggingface/peft, src/peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING].
void take_targets_of_peft(const Written* model, RunBuilder& builder) {
  constexpr std::array<std::string_view, 8> families{"llama", "mistral", "mixtral", "gemma",
                                                     "qwen2", "qwen3",   "smollm",  "zephyr"};
  const std::string name = model == nullptr ? std::string() : lower_case(text_of_values(*model));
  const bool is_one = std::any_of(families.begin(), families.end(), [&](std::string_view family) {
    return name.find(family) != std::string::npos;
  });
  if (!is_one) return;
  builder.set("lora_targets", "q_proj,v_proj", nullptr);
  builder.imply("lora_target_modules is q_proj,v_proj where it is not written, by PEFT");
}

// What settings of TRL say where a program's name does not: GRPO has groups of answers, KTO single ones, and CPO and
// SimPO no reference.
void take_preference_words(TreeRun& run, RunScale& scale) {
  if (scale.pairs || scale.reference || run.has("num_generations") || run.has("reward_funcs")) return;
  const std::string loss = lower_case(run.text("loss_type"));
  const bool single = run.has("desirable_weight") || loss == "kto";
  const bool of_answers = run.has("beta") && (run.has("max_prompt_length") || run.has("loss_type"));
  if (!single && !run.has("dpo_beta") && !of_answers) return;
  scale.pairs = !single;
  scale.reference = !run.has("cpo_alpha") && !run.has("simpo_gamma") && loss != "simpo";
}

constexpr LaunchKey hugging_face_keys[] = {
    {"attn_impl"},
    {"tokenizer_name*"},
    {"trust_remote_code"},
    {"model_revision"},
    {"low_cpu_mem_usage"},
    {"use_cache"},
    {"lora_*"},
    {"bnb_4bit_*"},
    {"use_bnb_nested_quant"},
    {"use_rslora"},
    {"use_dora", LaunchUse::unmodelled, "DoRA: read as LoRA"},
    {"freeze_*", LaunchUse::unmodelled, "frozen weights: they are counted as trained"},
    {"tune_*", LaunchUse::unmodelled, "parts that alone are trained: all are counted as trained"},
    {"fsdp_transformer_layer_cls_to_wrap"},
    {"gradient_checkpointing_kwargs.*"},
    {"gradient_checkpointing_use_reentrant"},
    {"per_device_eval_batch_size"},
    {"per_gpu_eval_batch_size"},
    {"eval_accumulation_steps"},
    {"num_train_epochs"},
    {"max_train_samples"},
    {"max_eval_samples"},
    {"max_samples"},
    {"do_train"},
    {"do_eval"},
    {"do_predict"},
    {"tf32"},
    {"remove_unused_columns"},
    {"dataloader_*"},
    {"ddp_*"},
    {"report_to*"},
    {"packing"},
    {"padding_free"},
    {"group_by_length", LaunchUse::unmodelled, "batches of sequences of like lengths"},
    {"auto_find_batch_size", LaunchUse::unmodelled, "the batch is halved until it fits"},
    {"max_prompt_length"},
    {"max_completion_length"},
    {"beta"},
    {"alpha"},
    {"loss_type*"},
    {"num_generations"},
    {"use_vllm", LaunchUse::unmodelled, "generation during training"},
    {"vllm_*"},
    {"temperature"},
    {"top_p"},
    {"top_k"},
    {"neftune_noise_alpha"},
    {"dataset_*"},
    {"preprocessing_num_workers"},
    {"train_on_inputs"},
    {"completion_only_loss"},
    {"assistant_only_loss"},
    {"disable_tqdm"},
    {"optim_args"},
    {"optim_target_modules"},
    {"average_tokens_across_devices"},
    {"include_*"},
    {"ignore_data_skip"},
    {"label_smoothing_factor"},
    {"overwrite_output_dir"},
    {"overwrite_cache"},
    {"full_determinism"},
    {"torch_compile_*"},
    {"torch_empty_cache_steps"},
    {"reward_*"},
    {"rlhf_type"},
    {"system_prompt"},
    {"task_type"},
    {"ref_model*"},
    {"precompute_ref_log_probs"},
    {"streaming"},
    {"flash_attn*"},
    {"input_key"},
    {"output_key"},
    {"ring_head_stride"},
    {"packing_samples", LaunchUse::unmodelled, "samples that are packed into sequences"},
    {"critic_*", LaunchUse::unmodelled, "the critic"},
    {"ref_num_*"},
    {"actor_num_*"},
    {"*rollout_batch_size"},
    {"*generation_batch_size"},
    {"n_samples_per_prompt"},
    {"num_padding_at_beginning"},
    {"param_dtype"},
    {"use_flash_attn*"},
    {"gradient_checkpointing_kwargs"},
    {"reduce_loss"},
    {"with_tracking"},
    {"train_file"},
    {"validation_file"},
    {"lazy_preprocess"},
    {"swanlab_*"},
};

constexpr LaunchKey factory_keys[] = {
    {"train_from_scratch"},
    {"flash_attn"},
    {"packing"},
    {"neat_packing"},
    {"template"},
    {"mask_history"},
    {"train_on_prompt"},
    {"enable_thinking"},
    {"reasoning_effort"},
    {"rope_scaling"},
    {"max_samples"},
    {"interleave_probs"},
    {"mix_strategy"},
    {"preprocessing_num_workers"},
    {"preprocessing_batch_size"},
    {"overwrite_cache"},
    {"overwrite_output_dir"},
    {"trust_remote_code"},
    {"image_max_pixels"},
    {"image_min_pixels"},
    {"video_max_pixels"},
    {"video_*"},
    {"freeze_vision_tower"},
    {"freeze_multi_modal_projector"},
    {"freeze_*", LaunchUse::unmodelled, "frozen layers"},
    {"plot_loss"},
    {"do_train"},
    {"do_eval"},
    {"do_predict"},
    {"num_train_epochs"},
    {"max_steps"},
    {"ddp_timeout"},
    {"ddp_*"},
    {"lora_*"},
    {"loraplus_*"},
    {"additional_target", LaunchUse::unmodelled, "modules trained in full beside the adapters"},
    {"use_rslora"},
    {"use_dora", LaunchUse::unmodelled, "DoRA: read as LoRA"},
    {"pissa_*"},
    {"quantization_method"},
    {"double_quantization"},
    {"use_galore", LaunchUse::unmodelled, "moments of low rank: whole ones are counted, which take more"},
    {"galore_*"},
    {"use_badam", LaunchUse::unmodelled, "read as the optimizer that is named"},
    {"badam_*"},
    {"use_apollo", LaunchUse::unmodelled, "read as the optimizer that is named"},
    {"apollo_*"},
    {"use_muon", LaunchUse::unmodelled, "read as the optimizer that is named"},
    {"use_adam_mini", LaunchUse::unmodelled, "read as Adam"},
    {"use_unsloth", LaunchUse::unmodelled, "unsloth's kernels"},
    {"fp8", LaunchUse::unmodelled, "GEMMs are modelled in BF16"},
    {"fp8_*"},
    {"pref_*"},
    {"ref_model*"},
    {"reward_model*"},
    {"per_device_eval_batch_size"},
    {"dataloader_*"},
    {"report_to*"},
    {"resize_vocab"},
    {"adapter_name_or_path"},
    {"peft_config.*"},
    {"dist_config.*"},
    {"kernel_config.*"},
    {"use_v1_kernels", LaunchUse::unmodelled, "LLaMA-Factory's own kernels"},
    {"model_class"},
    {"export_*"},
    {"use_packed_sequences"},
    {"disable_shuffling"},
};

// LLaMA-Factory on Megatron-Core: its own names for batches, Megatron's for the rest. `scale`: the GPUs.
LaunchedRun megatron_of_factory(TreeRun& run, const TrainerNames& names, bool adapter,
                                const Written* adapter_at, RunScale scale, const LaunchOptions& options) {
  RunBuilder& builder = run.builder();
  builder.use_software(adapter ? "nemo-2025" : "megatron-core-2025");  // Megatron-Bridge has adapters
  take_core(run, scale, {});
  need_equal_stages(run);
  RunScale batches;
  take_common(run, names, batches);
  scale.micro = batches.micro;
  scale.accumulation = batches.accumulation;
  take_adapter(run, names, adapter, adapter_at, 8);
  settle(scale, builder);
  std::vector<LaunchKey> keys(std::begin(factory_keys), std::end(factory_keys));
  keys.insert(keys.end(), core_keys().begin(), core_keys().end());
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace

LaunchedRun read_hugging_face(const TreeFile& file, const LaunchOptions& options) {
  TrainerLaunch launch{.written = flattened(file.root, file.file)};
  launch.alone = true;
  if (are_trl_words("", launch.written)) defaults_of_trl(launch, {file.file, 0});
  return read_trainer_words(std::move(launch), file.file, options);
}

LaunchedRun read_trainer_words(TrainerLaunch launch, const std::string& file, const LaunchOptions& options) {
  RunBuilder builder(file, "Hugging Face Trainer", "hf-trainer");
  if (are_grpo_words(launch.written)) take_grpo(launch);
  const std::vector<LaunchRemark> remarks = std::move(launch.remarks);
  RunScale scale = scale_of_launch(launch, builder);
  if (launch.global && !launch.global->unknown.empty()) {
    builder.unresolved(*launch.global, "global_batch");
  } else if (launch.global) {
    scale.global = whole_count(text_of_values(*launch.global));
    builder.set("global_batch", text_of_values(*launch.global), &*launch.global);
  }
  add_engine_batch(launch, builder);
  TreeRun run(last_of_each(std::move(launch.written)), builder);
  refuse_two_dtypes(run);
  if (launch.tuner) take_tuner(*launch.tuner, builder);
  // OpenRLHF states its GPUs so, where nothing else does.
  for (const std::string_view name : {"actor_num_nodes", "actor_num_gpus_per_node"}) {
    if (!scale.devices) run.find({name}, "data_parallel");
  }
  const TrainerNames names{{"model_name_or_path", "model_config.model_name_or_path", "model_name", "model_id",
                            "model_path", "pretrained_model_name_or_path", "base_model"},
                           {"per_device_train_batch_size", "per_gpu_train_batch_size"},
                           trainer_lengths,
                           8,
                           0,
                           {"optim"},
                           {"lora_r", "lora_rank", "use_llm_lora"},
                           {"lora_target_modules", "lora_target"}};
  // Of TRL, and of scripts that many have copied (Qwen's, LLaVA's, InternVL's).
  const Written* const peft = run.find({"use_peft", "use_lora", "lora_enable"}, "lora_rank");
  const bool adapter = peft != nullptr
                           ? is_on(*peft)
                           : run.count({"lora_r", "lora_rank", "use_llm_lora"}, "lora_rank").value_or(0) > 0;
  if (adapter && peft != nullptr && peft->name == "use_peft" && !run.has("lora_target_modules"))
    take_targets_of_peft(run.find_path(names.model), builder);
  // Of TRL, of ms-swift, and of the scripts with such a switch [trl/trainer/model_config.py; ms-swift,
  // docs, Command-line-parameters; QwenLM/Qwen, finetune.py; haotian-liu/LLaVA, llava/train/train.py].
  if (adapter && peft != nullptr) default_lora_dropout(run, peft);
  // [trl/trainer/sft_trainer.py, _chunked_cross_entropy_loss: the logits of 256 tokens at a time]
  if (const Written* const loss = run.find("loss_type");
      loss != nullptr && text_of_values(*loss) == "chunked_nll")
    builder.choose("cross_entropy", "linear_fused", loss);
  take_preference_words(run, scale);
  const bool shards = has_deepspeed(run) || has_fsdp(run, "fsdp_config");
  if (launch.alone && !shards)
    builder.assume(
        "DDP, where every GPU holds a full replica: the file does not say how it is launched "
        "(--data-sharding zero3, or the script that starts it)");
  if (run.has("adafactor") && run.on("adafactor"))
    builder.set("optimizer", "adafactor", run.find("adafactor"));
  LaunchedRun read = hf_like(run, names, adapter, peft, 16,
                             run.find({"gradient_checkpointing", "grad_checkpoint"}, "recompute"),
                             hugging_face_keys, options, scale);
  read.remarks.insert(read.remarks.end(), remarks.begin(), remarks.end());
  return read;
}

LaunchedRun read_llama_factory(const TreeFile& file, const LaunchOptions& options) {
  return read_llama_factory_words({.written = flattened(file.root, file.file)}, file.file, options);
}

LaunchedRun read_llama_factory_words(TrainerLaunch launch, const std::string& file,
                                     const LaunchOptions& options) {
  RunBuilder builder(file, "LLaMA-Factory", "hf-trainer");
  RunScale scale = scale_of_launch(launch, builder);
  TreeRun run(last_of_each(std::move(launch.written)), builder);
  refuse_two_dtypes(run);
  const TrainerNames names{{"model_name_or_path", "model"},
                           {"per_device_train_batch_size", "micro_batch_size"},
                           {"cutoff_len"},
                           run.has("micro_batch_size") || run.has_below("dist_config") ? 1 : 8,
                           2048,
                           {"optim", "optimizer"},
                           {"lora_rank", "peft_config.r"},
                           {"lora_target", "peft_config.target_modules"}};
  const Written* const type = run.find({"finetuning_type", "peft_config.name"});
  const std::string kind = type == nullptr ? "" : lower_case(text_of_values(*type));
  const bool by_default = type == nullptr && !run.has("model") && !run.has_below("dist_config");
  const bool adapter = kind == "lora" || by_default;
  if (by_default) builder.imply("finetuning_type is lora where it is not written");
  if (kind == "freeze" || kind == "oft") builder.leave_out(*type, "read as if all weights were trained");
  const std::string trained = run.text("stage");
  scale.pairs = scale.pairs || trained == "dpo" || trained == "rm";
  // [hparams/finetuning_args.py, use_ref_model]
  const std::string loss = run.text("pref_loss");
  scale.reference =
      scale.reference || trained == "kto" || (trained == "dpo" && loss != "orpo" && loss != "simpo");
  if (const Written* const other = run.find("ref_model"); other != nullptr && scale.reference)
    builder.leave_out(*other, "a reference of its own sizes: it is counted as large as the model");
  if (trained == "ppo")
    builder.leave_out(*run.find("stage"), "the models of PPO: one model on single sequences is read");
  const bool megatron = run.has("tensor_model_parallel_size") || run.has("pipeline_model_parallel_size");
  if (megatron && (scale.pairs || scale.reference))
    builder.leave_out(*run.find("stage"),
                      "pairs and a reference model: one model on single sequences is read");
  if (megatron) {
    scale.pairs = scale.reference = false;
    return megatron_of_factory(run, names, adapter, type, scale, options);
  }
  // Of its second release: FSDP2 with its sizes.
  if (run.has_below("dist_config")) {
    scale.context = run.size("context_parallel", {"dist_config.cp_size", "cp_size"});
    scale.shard = run.count("dist_config.mp_shard_size");
    scale.replicate = run.count("dist_config.mp_replicate_size");
    const Written* const name = run.find("dist_config.name");
    if (name != nullptr && text_of_values(*name) == "fsdp2") builder.set("data_sharding", "zero3", name);
    if (const Written* const mode = run.find({"dist_config.cp_mode", "cp_mode"});
        mode != nullptr && text_of_values(*mode) == "ulysses")
      builder.set("cp_comm", "a2a", mode);
    if (name != nullptr && text_of_values(*name) == "deepspeed")
      take_deepspeed_of(run, "dist_config.config_file", scale);
    if (run.on("dist_config.offload_params")) offload_all(run.find("dist_config.offload_params"), builder);
    if (const auto batch = run.count("global_batch_size")) {
      scale.global = batch;
      builder.set("global_batch", std::to_string(*batch), run.find("global_batch_size"));
    }
  }
  const bool second = run.has_below("dist_config") || run.has("model");
  const Written* const disabled = run.find("disable_gradient_checkpointing");
  const Written* const enabled = run.find({"enable_activation_checkpointing", "gradient_checkpointing"});
  if (disabled != nullptr && is_on(*disabled)) {
    builder.set("recompute", "none", disabled);
  } else if (enabled != nullptr) {
    builder.set("recompute", is_on(*enabled) ? "full" : "none", enabled);
  } else if (!second) {
    builder.set("recompute", "full", nullptr);
    builder.imply("LLaMA-Factory checkpoints every layer unless disable_gradient_checkpointing is on");
  }
  if (run.on("use_unsloth_gc")) builder.set("offload_modules", "layer_input", run.find("use_unsloth_gc"));
  if (run.on("pure_bf16")) step_loaded_weights(run.find("pure_bf16"), builder);
  return hf_like(run, names, adapter, type, 8, nullptr, factory_keys, options, scale);
}

}  // namespace headroom
