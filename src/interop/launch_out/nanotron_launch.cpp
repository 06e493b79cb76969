// Whole launches of nanotron.
#include <algorithm>

#include <fmt/format.h>

#include "headroom/model/layer_kinds.hpp"
#include "interop/launch_out/launches.hpp"
#include "interop/launch_out/script.hpp"

namespace headroom {
namespace {

std::string_view truth(bool value) { return value ? "true" : "false"; }

// What nanotron's configuration has no key for.
std::vector<std::string> nanotron_lacks(const Request& request) {
  const Strategy& strategy = request.strategy;
  const Architecture& layer = request.model.architecture;
  std::vector<std::string> lacks;
  const auto lack = [&](bool is, std::string what) {
    if (is) lacks.push_back(std::move(what));
  };
  const bool llama = layer.normalization == Normalization::rms_norm &&
                     layer.activation == Activation::swiglu && layer.positions == Positions::rotary &&
                     !layer.linear_bias && !layer.experts && request.model.layer_kinds.empty() &&
                     !layer.latent_attention;
  lack(!llama, "the model: nanotron trains Llama's layers");
  lack(strategy.virtual_pipeline > 1, "--virtual-pipeline: nanotron has one stage on each rank");
  lack(strategy.pipeline_parallel > 1 && strategy.schedule != ScheduleKind::one_forward_one_backward &&
           strategy.schedule != ScheduleKind::gpipe,
       "--schedule: nanotron runs 1F1B and AFAB only");
  // [nanotron 2411b02, parallel/pipeline_parallel/engine.py:252]
  lack(strategy.schedule == ScheduleKind::one_forward_one_backward &&
           microbatches(strategy, request.workload) < strategy.pipeline_parallel - 1,
       "--global-batch: nanotron's 1F1B needs a microbatch for each stage but one");
  lack(strategy.recompute.policy != RecomputePolicy::none &&
           (strategy.recompute.policy != RecomputePolicy::full || strategy.recompute.layers > 0),
       "--recompute: nanotron recomputes all layers or none");
  lack(!keeps_fp32(strategy.optimizer), "moments of 16 bits: nanotron has none");
  lack(request.model.key_value_heads % strategy.tensor_parallel != 0,
       "--tensor-parallel: nanotron does not copy key/value heads [config/config.py:542]");
  lack(offloads(strategy.offload), "offloading: nanotron has none");
  lack(strategy.precision != Precision::bf16, "--precision: nanotron trains in BF16 only");
  if (strategy.optimizer.kind != OptimizerKind::adam)
    lacks.emplace_back("--optimizer: only AdamW is written here");
  return lacks;
}

}  // namespace

void write_nanotron(const Request& request, Launch& launch) {
  const Strategy& strategy = request.strategy;
  const Transformer& model = request.model;
  const std::vector<std::string> lacks = nanotron_lacks(request);
  launch.lacks.insert(launch.lacks.end(), lacks.begin(), lacks.end());
  std::string text = file_title(launch, request);
  const bool scatter = strategy.sequence_parallel && strategy.tensor_parallel > 1;
  text +=
      "checkpoints:\n  checkpoint_interval: 1000\n  checkpoints_path: ./checkpoints\n"
      "  resume_checkpoint_path: null\n  save_initial_state: false\n";
  text +=
      "data_stages:\n- name: train\n  start_training_step: 1\n  data:\n    dataset: null\n"
      "    num_loading_workers: 1\n    seed: 42\n";
  text += "general:\n  project: headroom\n  run: headroom\n  seed: 42\n  ignore_sanity_checks: true\n";
  text += "logging:\n  iteration_step_info_interval: 1\n  log_level: info\n  log_level_replica: info\n";
  text += fmt::format(
      "model:\n  ddp_bucket_cap_mb: 25\n  dtype: bfloat16\n  init_method:\n    std: 0.02\n"
      "  make_vocab_size_divisible_by: {}\n  model_config:\n    bos_token_id: 1\n    eos_token_id: 2\n"
      "    hidden_act: silu\n    hidden_size: {}\n    initializer_range: 0.02\n    intermediate_size: {}\n"
      "    is_llama_config: true\n    max_position_embeddings: {}\n    num_attention_heads: {}\n"
      "    num_hidden_layers: {}\n    num_key_value_heads: {}\n    pretraining_tp: 1\n    rms_norm_eps: "
      "1.0e-05\n"
      "    rope_scaling: null\n    tie_word_embeddings: {}\n    use_cache: true\n    vocab_size: {}\n",
      model.vocabulary_multiple, model.hidden, model.feedforward,
      std::max(request.workload.sequence, model.max_positions), model.heads, model.layers,
      model.key_value_heads, truth(model.architecture.tied_embeddings), model.vocabulary);
  text += fmt::format(
      "optimizer:\n  accumulate_grad_in_fp32: {}\n  clip_grad: 1.0\n  learning_rate_scheduler:\n"
      "    learning_rate: 0.0001\n    lr_decay_starting_step: null\n    lr_decay_steps: 48\n    "
      "lr_decay_style: cosine\n"
      "    lr_warmup_steps: 2\n    lr_warmup_style: linear\n    min_decay_lr: 1.0e-05\n  optimizer_factory:\n"
      "    adam_beta1: 0.9\n    adam_beta2: 0.95\n    adam_eps: 1.0e-08\n    name: adamW\n"
      "    torch_adam_is_fused: true\n  weight_decay: 0.01\n  zero_stage: {}\n",
      truth(strategy.gradient_dtype == Dtype::fp32), shards_optimizer(strategy) ? 1 : 0);
  text += fmt::format(
      "parallelism:\n  dp: {}\n  pp: {}\n  tp: {}\n  context_parallel_size: {}\n  expert_parallel_size: {}\n"
      "  pp_engine: {}\n  recompute_layer: {}\n  tp_linear_async_communication: {}\n  tp_mode: {}\n",
      strategy.data_parallel, strategy.pipeline_parallel, strategy.tensor_parallel, strategy.context_parallel,
      strategy.expert_parallel, strategy.schedule == ScheduleKind::gpipe ? "afab" : "1f1b",
      truth(strategy.recompute.policy == RecomputePolicy::full),
      truth(scatter && request.software.overlap_tensor_parallel != TensorOverlap::none),
      scatter ? "REDUCE_SCATTER" : "ALL_REDUCE");
  text += "tokenizer:\n  tokenizer_max_length: null\n  tokenizer_name_or_path: gpt2\n";
  text += fmt::format(
      "tokens:\n  batch_accumulation_per_replica: {}\n  limit_test_batches: 0\n  limit_val_batches: 0\n"
      "  micro_batch_size: {}\n  sequence_length: {}\n  train_steps: 50\n  val_check_interval: -1\n",
      microbatches(strategy, request.workload), strategy.micro_batch, request.workload.sequence);
  if (strategy.tensor_parallel > 1) launch.environment.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", "1"});
  Script script{.variables = {{"NANOTRON_PATH", "/opt/nanotron", "a checkout of the release above"}},
                .arrays = {},
                .program = "\"$NANOTRON_PATH/run_train.py\" --config-file headroom.yaml",
                .setup = {},
                .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"headroom.yaml", text});
}

}  // namespace headroom
