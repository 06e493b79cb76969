// axolotl.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// What the validation of its settings refuses.
void refuse_axolotl(TreeRun& run, const Written* adapter) {
  const auto refuse = [&](std::string_view field, const Written& at, std::string rule,
                          std::string_view check) {
    run.builder().refuse({.fields = {std::string(field)},
                          .rule = std::move(rule),
                          .source = fmt::format("axolotl, utils/schemas, {}", check),
                          .written = at.as_written,
                          .at = at.at});
  };
  const Written* const deepspeed = run.find("deepspeed");
  if (deepspeed != nullptr && is_on(*deepspeed) && run.has("fsdp"))
    refuse("data_sharding", *deepspeed, "deepspeed and fsdp cannot be used together: drop one",
           "check_fsdp_deepspeed");
  const bool four_bits = adapter != nullptr && text_of_values(*adapter) == "qlora";
  if (!four_bits || run.has("peft.backend")) return;
  if (run.on("load_in_8bit"))
    refuse("base_dtype", *run.find("load_in_8bit"), "adapter qlora needs load_in_8bit off", "validate_qlora");
  if (!run.on("load_in_4bit"))
    refuse("base_dtype", *adapter, "adapter qlora needs load_in_4bit: true", "validate_qlora");
}

}  // namespace

LaunchedRun read_axolotl(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "axolotl", "hf-trainer");
  TreeRun run(flattened(file.root, file.file), builder);
  const TrainerNames names{{"base_model"}, {"micro_batch_size"}, {"sequence_len"},       1, 2048,
                           {"optimizer"},  {"lora_r", "peft.r"}, {"lora_target_modules"}};
  const Written* const adapter = run.find("adapter");
  const bool low_rank =
      adapter != nullptr && (text_of_values(*adapter) == "lora" || text_of_values(*adapter) == "qlora");
  refuse_axolotl(run, adapter);
  RunScale scale;
  scale.tensor = run.size("tensor_parallel", {"tensor_parallel_size"});
  scale.context = run.size("context_parallel", {"context_parallel_size", "sequence_parallel_degree"});
  const std::int64_t experts = run.size("expert_parallel", {"expert_parallel_size"});
  scale.shard = run.count("dp_shard_size");
  scale.replicate = run.count("dp_replicate_size");
  if (scale.shard && experts > 1) {
    scale.shard = *scale.shard * experts;
    builder.imply(fmt::format("EP stands beside the shards in axolotl's grid: DP is dp_shard_size x EP = {}",
                              *scale.shard));
  }
  if (const Written* const rl = run.find("rl"); rl != nullptr && !is_null(*rl)) {
    const std::string kind = lower_case(text_of_values(*rl));
    scale.pairs = kind == "dpo" || kind == "ipo" || kind == "orpo" || kind == "simpo";
    scale.reference = kind == "dpo" || kind == "ipo" || kind == "kto";
    if (!scale.pairs && !scale.reference)
      builder.leave_out(*rl,
                        "generated answers and their rewards are not counted: read as one model trained on "
                        "single sequences");
  }
  if (run.has("unfrozen_parameters"))
    builder.leave_out(*run.find("unfrozen_parameters"), "frozen weights: read as if all were trained");
  if ((scale.shard || scale.replicate) && !has_fsdp(run, "fsdp_config") && !run.has("deepspeed"))
    builder.set("data_sharding", "zero3", nullptr);
  static constexpr LaunchKey keys[] = {
      {"reinit_weights"},
      {"model_type"},
      {"tokenizer_type"},
      {"base_model_config"},
      {"trust_remote_code"},
      {"is_*_derived_model"},
      {"is_llama_derived_model"},
      {"is_mistral_derived_model"},
      {"is_qwen_derived_model"},
      {"strict"},
      {"plugins*", LaunchUse::unmodelled, "kernels and losses of plugins"},
      {"load_weights_only"},
      {"liger_*", LaunchUse::unmodelled, "Liger's fused kernels"},
      {"cut_cross_entropy", LaunchUse::unmodelled, "a loss without logits in memory"},
      {"chunked_cross_entropy", LaunchUse::unmodelled, "a loss over parts of the logits"},
      {"lora_mlp_kernel", LaunchUse::unmodelled, "fused kernels of adapters"},
      {"lora_qkv_kernel", LaunchUse::unmodelled, "fused kernels of adapters"},
      {"lora_o_kernel", LaunchUse::unmodelled, "fused kernels of adapters"},
      {"lora_embedding_kernel", LaunchUse::unmodelled, "fused kernels of adapters"},
      {"use_scattermoe*", LaunchUse::unmodelled, "kernels of experts"},
      {"use_kernels*", LaunchUse::unmodelled, "kernels of the hub"},
      {"use_sonicmoe*", LaunchUse::unmodelled, "kernels of experts"},
      {"experts_implementation", LaunchUse::unmodelled, "kernels of experts"},
      {"lora_modules_to_save*", LaunchUse::unmodelled, "whole matrices that are trained beside adapters"},
      {"lora_*"},
      {"peft_*"},
      {"peft.*"},
      {"sample_packing*"},
      {"multipack_*"},
      {"pad_to_sequence_len"},
      {"eval_sample_packing"},
      {"train_on_inputs"},
      {"group_by_length", LaunchUse::unmodelled, "batches of sequences of like lengths"},
      {"flash_attention"},
      {"flash_attn_*"},
      {"sdp_attention"},
      {"xformers_attention"},
      {"flex_attention"},
      {"sage_attention"},
      {"attention"},
      {"s2_attention", LaunchUse::unmodelled, "shifted sparse attention"},
      {"scaling_softmax"},
      {"gradient_checkpointing_kwargs.*"},
      {"activation_offloading", LaunchUse::unmodelled, "activations on the host"},
      {"tf32"},
      {"bfloat16"},
      {"float16"},
      {"fp8*", LaunchUse::unmodelled, "FP8"},
      {"num_epochs"},
      {"max_steps"},
      {"val_set_size"},
      {"min_sample_len"},
      {"datasets.*"},
      {"test_datasets.*"},
      {"pretraining_dataset*"},
      {"dataset*"},
      {"skip_prepare_dataset"},
      {"chat_template*"},
      {"default_system_message"},
      {"special_tokens.*"},
      {"tokens*"},
      {"added_tokens_overrides.*"},
      {"resize_token_embeddings_to_32x"},
      {"embeddings_skip_upcast"},
      {"local_rank"},
      {"early_stopping_patience"},
      {"auto_resume_from_checkpoints"},
      {"load_best_model_at_end"},
      {"low_cpu_mem_usage"},
      {"ddp*"},
      {"heads_k_stride"},
      {"ring_attn_func"},
      {"dataloader_*"},
      {"streaming*"},
      {"shuffle_merged_datasets"},
      {"loraplus_*"},
      {"relora*"},
      {"torch_compile_*"},
      {"torch_dtype"},
      {"gpu_memory_limit"},
      {"noisy_embedding_alpha"},
      {"neftune_noise_alpha"},
      {"mean_resizing_embeddings"},
      {"quantize_moe_experts", LaunchUse::unmodelled, "experts of fewer bits"},
      {"quantization.*", LaunchUse::unmodelled, "quantization"},
      {"qat.*", LaunchUse::unmodelled, "quantization while training"},
      {"model_quantization_config*", LaunchUse::unmodelled, "weights that are quantized as published"},
      {"bnb_config_kwargs.*"},
      {"expert_parallel_*"},
      {"unsloth_*", LaunchUse::unmodelled, "unsloth's kernels"},
      {"tiled_mlp*", LaunchUse::unmodelled, "MLPs of parts of the sequence (ALST)"},
      {"eval_*"},
      {"include_tokens_per_second"},
      {"experimental_*"},
      {"process_reward_model"},
      {"reward_model", LaunchUse::unmodelled, "a head of rewards"},
      {"processor_*"},
      {"image_*"},
      {"freeze_mm_modules"},
      {"overrides_of_model_*"},
      {"use_*"},
  };
  return hf_like(run, names, low_rank, adapter, 8, run.find("gradient_checkpointing"), keys, options, scale);
}

}  // namespace headroom
