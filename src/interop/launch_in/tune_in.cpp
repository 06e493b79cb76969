// torchtune.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/launch_in/frameworks.hpp"
#include "interop/launch_in/trainer_common.hpp"
#include "interop/launch_in/trainer_parts.hpp"
#include "io/text.hpp"

namespace headroom {
namespace {

// Names of torchtune's builders: "qlora_llama3_1_8b" is a LLaMA 3.1 of 8B with adapters on 4-bit weights.
std::string hub_name(std::string name) {
  for (std::size_t i = 1; i + 2 < name.size(); ++i) {
    const auto digit = [&](std::size_t at) { return name[at] >= '0' && name[at] <= '9'; };
    if (name[i] == '_' && digit(i - 1) && digit(i + 1) && name[i + 2] == '_') {
      name[i] = '.';
      break;
    }
  }
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool drop_start(std::string& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.erase(0, start.size());
  return true;
}

void step_in_backward(const Written& setting, TreeRun& run) {
  run.builder().set("step_in_backward", "yes", &setting);
  const Written* const clip = run.find("clip_grad_norm");
  if (clip == nullptr || is_null(*clip)) return;
  run.builder().refuse({.fields = {"step_in_backward"},
                        .rule = "needs optimizer_in_bwd off: no step knows the norm of all gradients",
                        .source = "torchtune, recipes/full_finetune_single_device.py, "
                                  "FullFinetuneRecipeSingleDevice.__init__",
                        .written = clip->as_written,
                        .at = clip->at});
}

}  // namespace

LaunchedRun read_torchtune(const TreeFile& file, const LaunchOptions& options) {
  RunBuilder builder(file.file, "torchtune", "torchtune");
  TreeRun run(flattened(file.root, file.file), builder);
  RunScale scale;
  const Written* const component = run.find({"model._component_", "models.model._component_"});
  std::string name = component == nullptr ? "" : text_of_values(*component);
  const bool second_gemma = name.find(".gemma2.") != std::string::npos;
  name.erase(0, name.rfind('.') + 1);
  const bool four_bits = drop_start(name, "qlora_");
  const bool adapter =
      drop_start(name, "lora_") || drop_start(name, "dora_") || four_bits || run.has("model.lora_rank");
  if (second_gemma && drop_start(name, "gemma_")) name = "gemma2_" + name;
  if (component != nullptr) name_model_of(hub_name(name), component, file.file, builder);
  take_micro(run, scale, {"batch_size"});
  scale.accumulation = run.above_zero({"gradient_accumulation_steps"}).value_or(1);
  take_sequence(run, {"tokenizer.max_seq_len", "dataset.max_seq_len", "max_seq_len"});
  scale.tensor = run.size("tensor_parallel", {"tensor_parallel_dim"});
  if (scale.tensor > 1) builder.set("sequence_parallel", "yes", run.find("tensor_parallel_dim"));
  scale.context = run.size("context_parallel", {"context_parallel_dim"});
  scale.shard = run.count("data_parallel_shard_dim");
  scale.replicate = run.count("data_parallel_replicate_dim");
  const bool single = file.file.find("single_device") != std::string::npos;
  if (single) {
    scale.devices = 1;
    builder.imply("a recipe of a single device by the file's name");
  } else {
    builder.set("data_sharding", "zero3", nullptr);
    builder.imply("distributed recipes of torchtune shard by FSDP2");
  }
  // [torchtune/rlhf/loss; recipes/lora_dpo_single_device.py, full_dpo_distributed.py]
  if (const std::string loss = run.text("loss._component_"); loss.find(".rlhf.loss.") != std::string::npos) {
    count_pairs(scale, run.find("batch_size"), builder);
    if (loss.find("SimPO") == std::string::npos) take_reference(adapter, builder);
  }
  if (const Written* const checkpoints = run.find("enable_activation_checkpointing"))
    builder.set("recompute", is_on(*checkpoints) ? "full" : "none", checkpoints);
  if (const Written* const offload = run.find("enable_activation_offloading");
      offload != nullptr && is_on(*offload)) {
    if (builder.value("recompute") == "full")
      builder.set("offload_modules", "layer_input", offload);
    else
      builder.leave_out(*offload, "activations on the host");
  }
  if (const Written* const host = run.find("fsdp_cpu_offload"); host != nullptr && is_on(*host))
    offload_all(host, builder);
  const Written* const dtype = run.find("dtype");
  if (dtype != nullptr && text_of_values(*dtype) == "bf16") {
    builder.set("main_params_dtype", "none", dtype);
    builder.set("exp_avg_dtype", "bf16", dtype);
    builder.set("exp_avg_sq_dtype", "bf16", dtype);
    builder.set("gradient_dtype", "bf16", dtype);
    builder.imply("weights are bf16 and the optimizer steps them: no fp32 main parameters", dtype);
  }
  if (dtype != nullptr && text_of_values(*dtype) == "fp32") {
    builder.take_fp32_as_bf16(dtype);
    for (const char* const field :
         {"main_params_dtype", "exp_avg_dtype", "exp_avg_sq_dtype", "gradient_dtype"})
      builder.set(field, "fp32", dtype);
  }
  if (const Written* const optimizer = run.find("optimizer._component_")) {
    take_optimizer(*optimizer, builder);
  }
  if (const Written* const fused = run.find("optimizer_in_bwd"); fused != nullptr && is_on(*fused)) {
    if (adapter)
      builder.imply("optimizer_in_bwd changes nothing: torchtune's LoRA recipes do not read it", fused);
    else
      step_in_backward(*fused, run);
  }
  if (const Written* const compiled = run.find({"compile", "compile.model"});
      compiled != nullptr && is_on(*compiled))
    builder.choose("launches", "compiled", compiled);
  if (adapter) {
    const auto rank = run.count("model.lora_rank");
    builder.set("lora_rank", std::to_string(rank.value_or(8)),
                rank ? run.find("model.lora_rank") : component);
    if (four_bits || run.on("model.quantize_base")) builder.set("base_dtype", "nf4", component);
    if (const Written* const dropout = run.find("model.lora_dropout"))
      builder.set("lora_dropout", text_of_values(*dropout), dropout);
    const Written* const modules = run.find("model.lora_attn_modules");
    std::string targets;
    for (std::string target : modules == nullptr ? std::vector<std::string>{} : modules->values) {
      if (target == "output_proj") target = "o_proj";
      targets += (targets.empty() ? "" : ",") + target;
    }
    if (run.on("model.apply_lora_to_mlp"))
      targets += (targets.empty() ? "" : ",") + std::string("gate_proj,up_proj,down_proj");
    if (run.on("model.apply_lora_to_output"))
      builder.leave_out(*run.find("model.apply_lora_to_output"), "an adapter of the output layer");
    if (!targets.empty()) builder.set("lora_targets", targets, modules);
  }
  if (const Written* const apart = run.find("custom_sharded_layers"); apart != nullptr && !is_null(*apart))
    builder.choose("sharding.ends_in_root", "false", apart);
  // Its chunked losses cast a part of the logits at a time. Autograd keeps the 16-bit logits of all parts, and
  // makes the gradients of all before the output layer's [torchtune/modules/loss/ce_chunked_output_loss.py].
  if (const Written* const loss = run.find({"loss._component_", "loss"});
      loss != nullptr && (text_of_values(*loss).find("Chunked") != std::string::npos ||
                          text_of_values(*loss).find("LinearCrossEntropy") != std::string::npos))
    builder.choose("memory.fp32_logits", "false", loss);
  static constexpr LaunchKey keys[] = {
      {"dataset.packed", LaunchUse::unmodelled, "samples that are packed into sequences"},
      {"output_dir"},
      {"tokenizer.*"},
      {"dataset*"},
      {"checkpointer.*"},
      {"resume_from_checkpoint"},
      {"save_*"},
      {"optimizer.*"},
      {"lr_scheduler.*"},
      {"loss.*"},
      {"metric_logger.*"},
      {"profiler.*"},
      {"device"},
      {"dtype"},
      {"epochs"},
      {"max_steps_per_epoch"},
      {"clip_grad_norm"},
      {"log_*"},
      {"seed"},
      {"shuffle"},
      {"custom_sharded_layers*"},
      {"tensor_parallel_plan*"},
      {"model.lora_alpha"},
      {"model.use_dora", LaunchUse::unmodelled, "DoRA: read as LoRA"},
      {"model.*"},
      {"use_loss_parallel_ctx_manager"},
      {"enable_async_checkpointing"},
      {"memory_efficient_fsdp_wrap"},
      {"ac_mode"},
      {"ac_option"},
      {"compile*"},
      {"quantizer.*", LaunchUse::unmodelled, "quantization while training"},
      {"packed"},
      {"run_val_every_n_steps"},
      {"batch_size_val"},
      {"enable_fp8_training", LaunchUse::unmodelled, "FP8"},
      {"fp8_recipe_name", LaunchUse::unmodelled, "FP8"},
      {"collate_fn"},
      {"fsdp_*"},
      {"data_parallel_*"},
      {"enable_*"},
      {"context_parallel_rotate_method"},
      {"cp_*"},
      {"teacher_*", LaunchUse::unmodelled, "a second model"},
      {"kd_*"},
  };
  settle(scale, builder);
  run.rest(keys);
  return builder.finish(options);
}

}  // namespace headroom
