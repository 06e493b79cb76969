// Whole launches of Megatron-LM, Megatron-Bridge and NeMo.
#include <algorithm>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "interop/launch_out/launches.hpp"
#include "interop/launch_out/megatron_model.hpp"
#include "interop/launch_out/megatron_words.hpp"
#include "interop/launch_out/script.hpp"

namespace headroom {
namespace {

bool runs_fsdp(const Strategy& strategy) { return strategy.data_sharding >= DataSharding::zero2; }

// GPUs before Blackwell run kernels of several streams in the order of their launches only with one queue
// [Megatron-LM, training/arguments.py:1477], which FSDP refuses [the same, 1166]. Zero bubbles are of before Blackwell
// and want one queue everywhere; NeMo's configuration has no Megatron-FSDP.
void add_environment(const Request& request, Launch& launch) {
  const Strategy& strategy = request.strategy;
  const bool blackwell = request.system.performance && scales_blocks(request.system.performance->device) &&
                         launch.target != LaunchTarget::zero_bubble;
  const bool parallel = strategy.tensor_parallel > 1 || strategy.context_parallel > 1;
  if (runs_fsdp(strategy) && launch.target != LaunchTarget::nemo) {
    launch.environment.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", ""});
  } else if (parallel && !blackwell) {
    launch.environment.push_back({"CUDA_DEVICE_MAX_CONNECTIONS", "1"});
  }
  // Transformer Engine from 2.10 on [training/arguments.py:1939].
  if (!strategy.offload.modules.empty()) launch.environment.push_back({"NVTE_CPU_OFFLOAD_V1", "1"});
  // [training/arguments.py:1962]
  if (request.software.cuda_graphs == CudaGraphs::layers && request.software.memory.expandable_segments)
    launch.environment.push_back({"NCCL_GRAPH_REGISTER", "0"});
}

// Stops after some iterations: a launch is tried before data and learning rate are chosen.
constexpr std::int64_t tried_iterations = 50;

std::vector<std::string> training_words(const Request& request, bool fork) {
  std::vector<std::string> words{
      "--train-iters \"$TRAIN_ITERS\"", "--lr \"$LEARNING_RATE\"", "--min-lr 0",
      "--lr-decay-style cosine",        "--clip-grad 1.0",         "--log-interval 1",
      "--eval-interval 1000000",        "--eval-iters 0"};
  if (!fork) words.insert(words.end(), {"--log-throughput", "--distributed-timeout-minutes 60"});
  // Zero bubbles take apart the backward passes of local layers alone.
  const bool engine = !fork && runs_transformer_engine(request.software);
  words.push_back(fmt::format("--transformer-impl {}", engine ? "transformer_engine" : "local"));
  // WrappedTorchNorm has no persistent kernel [core/transformer/torch_norm.py].
  if (!fork && !engine && request.model.architecture.normalization == Normalization::rms_norm)
    words.emplace_back("--no-persist-layer-norm");
  // Of local layers; Transformer Engine's choose flash attention by themselves [megatron/training/arguments.py].
  if (!engine && request.model.architecture.kernels.attention == AttentionKernel::flash)
    words.emplace_back("--use-flash-attn");
  if (request.software.gradient_accumulation == GradientAccumulation::separate || runs_fsdp(request.strategy))
    words.emplace_back("--no-gradient-accumulation-fusion");
  if (runs_fsdp(request.strategy)) words.emplace_back("--ckpt-format fsdp_dtensor");
  return words;
}

}  // namespace

void write_megatron(const Request& request, Launch& launch) {
  const bool fork = launch.target == LaunchTarget::zero_bubble;
  add_environment(request, launch);
  ModelWords model = megatron_model(request, /*bridge=*/false);
  // NullTokenizer has one token more than it is told: the end of documents [core/tokenizers].
  model.words.push_back(fmt::format("--vocab-size {}", request.model.vocabulary - 1));
  launch.lacks.insert(launch.lacks.end(), model.lacks.begin(), model.lacks.end());
  const bool rms = request.model.architecture.normalization == Normalization::rms_norm;
  // WrappedTorchNorm [core/transformer/torch_norm.py].
  if (!fork && !runs_transformer_engine(request.software) && rms && request.strategy.sequence_parallel)
    launch.lacks.emplace_back("RMSNorm with sequence parallelism: Megatron-LM's local layers refuse it");
  if (fork) {
    launch.lacks.emplace_back(
        "the fork's own checks: not known here; compare the script with the fork's examples");
    if (request.model.architecture.tied_embeddings)
      launch.lacks.emplace_back("tied embeddings: this fork asserts --untie-embeddings-and-output-weights");
    if (request.software.post_validation)
      launch.lacks.emplace_back("validation after the optimizer's step: this fork has it with --fp16 only");
  }
  const bool hybrid = any_mixer(request.model, &Mixers::mamba);
  Script script{
      .variables = {{"MEGATRON_PATH", "/opt/megatron-lm", "a checkout of the release above"},
                    {"DATA_PATH", "", "prefix of an indexed data set; empty: mock data"},
                    {"CHECKPOINT_PATH", "", "folder to save in and to load from; empty: none"},
                    {"TRAIN_ITERS", "50", "iterations"},
                    {"LEARNING_RATE", "1e-4", "peak learning rate"}},
      .arrays = {{"MODEL_ARGS", std::move(model.words)},
                 {"PARALLEL_ARGS", launch.flags},
                 {"TRAINING_ARGS", training_words(request, fork)}},
      .program = fmt::format("\"$MEGATRON_PATH/{}\"", hybrid ? "pretrain_mamba.py" : "pretrain_gpt.py"),
      .setup =
          "DATA_ARGS=(--tokenizer-type NullTokenizer --mock-data)\n"
          "if [ -n \"$DATA_PATH\" ]; then\n"
          "  DATA_ARGS=(--tokenizer-type NullTokenizer --data-path \"$DATA_PATH\" --split 99,1,0)\n"
          "fi\n"
          "if [ -n \"$CHECKPOINT_PATH\" ]; then\n"
          "  DATA_ARGS+=(--save \"$CHECKPOINT_PATH\" --load \"$CHECKPOINT_PATH\" --save-interval 500)\n"
          "fi\n",
      .started = {}};
  script.program += " \"${DATA_ARGS[@]}\"";
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
}

namespace {

std::string_view python(bool value) { return value ? "True" : "False"; }

// Objects that overrides with dots need: the recipe has a name and nothing in their places
// [Megatron-Bridge, recipes/gpt/vanilla_gpt.py].
std::string bridge_program(const Request& request, const Launch& launch) {
  const Strategy& strategy = request.strategy;
  std::string text = file_title(launch, request);
  text +=
      R"(# Builds the configuration from nothing but Megatron-Core's defaults; the script's overrides say all of it.
import sys

import torch
from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config
from megatron.bridge.training.comm_overlap import CommOverlapConfig
from megatron.bridge.training.config import MockGPTDatasetConfig
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import MixedPrecisionConfig
from megatron.bridge.training.pretrain import pretrain
from megatron.bridge.training.utils.omegaconf_utils import process_config_with_overrides

cfg = vanilla_gpt_pretrain_config()
)";
  if (any_layer(request.model, [](const Architecture& layer) { return layer.latent_attention.has_value(); }))
    text +=
        "from megatron.bridge.models.mla_provider import MLAModelProvider\n\ncfg.model = "
        "MLAModelProvider()\n";
  text += fmt::format(
      "cfg.mixed_precision = MixedPrecisionConfig(\n"
      "    bf16=True, params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, "
      "autocast_dtype=torch.bfloat16,\n"
      "    grad_reduce_in_fp32={},\n)\n",
      python(strategy.gradient_dtype == Dtype::fp32));
  text += fmt::format("cfg.comm_overlap = CommOverlapConfig(tp_comm_overlap={})\n",
                      python(strategy.tensor_parallel > 1 && strategy.sequence_parallel &&
                             request.software.overlap_tensor_parallel == TensorOverlap::full));
  // Megatron-Core's own defaults fuse nothing [core/model_parallel_config.py, core/transformer/transformer_config.py].
  const Activation activation = request.model.architecture.activation;
  if (activation == Activation::swiglu || activation == Activation::gelu)
    text += "cfg.model.bias_activation_fusion = True\n";
  if (request.model.architecture.positions == Positions::rotary &&
      request.software.rotary_kernel == RotaryKernel::fused)
    text += "cfg.model.apply_rope_fusion = True\n";
  text += "cfg.model.bias_dropout_fusion = True\n";
  if (request.software.cuda_graphs != CudaGraphs::none) {
    text += "cfg.model.use_te_rng_tracker = True\ncfg.rng.te_rng_tracker = True\n";
    if (request.software.cuda_graphs == CudaGraphs::full_iteration)
      text +=
          "cfg.rerun_state_machine.check_for_nan_in_loss = False\ncfg.ddp.check_for_nan_in_grad = False\n";
  }
  if (strategy.lora.rank > 0) text += "from megatron.bridge.peft.lora import LoRA\n\ncfg.peft = LoRA()\n";
  text += R"(cfg.dataset = MockGPTDatasetConfig(
    random_seed=1234, seq_length=1024, reset_position_ids=False, reset_attention_mask=False,
    eod_mask_loss=False, num_workers=1,
)
cfg.tokenizer.vocab_size = )" +
          std::to_string(request.model.vocabulary - 1) + R"(
cfg.checkpoint.save = None
cfg.validation.eval_iters = 0
cfg = process_config_with_overrides(cfg, cli_overrides=sys.argv[1:])
pretrain(config=cfg, forward_step_func=forward_step)
)";
  return text;
}

// Sizes that overrides leave to the recipe where they are not said.
std::vector<std::string> stated_words(const Request& request) {
  std::vector<std::string> words;
  const Strategy& strategy = request.strategy;
  const auto said = [&](std::string word) { words.push_back(std::move(word)); };
  if (strategy.context_parallel == 1) said("model.context_parallel_size=1");
  if (strategy.virtual_pipeline == 1) said("model.virtual_pipeline_model_parallel_size=null");
  if (strategy.tensor_parallel == 1 || !strategy.sequence_parallel) said("model.sequence_parallel=false");
  if (strategy.recompute.policy == RecomputePolicy::none) said("model.recompute_granularity=null");
  if (stage_layout(request.model.layers, strategy) == StageLayout::even)
    said("model.pipeline_model_parallel_layout=null");
  if (!any_experts(request.model)) said("model.expert_model_parallel_size=1");
  // Bridge turns both on where they are not said [training/comm_overlap.py:577].
  if (!request.software.overlap_grad_reduce) said("comm_overlap.overlap_grad_reduce=false");
  if (!request.software.overlap_grad_reduce || !request.software.overlap_param_gather)
    said("comm_overlap.overlap_param_gather=false");
  return words;
}

}  // namespace

void write_bridge(const Request& request, Launch& launch) {
  add_environment(request, launch);
  ModelWords model = megatron_model(request, /*bridge=*/true);
  // The program's object says the first, and an override with the second would need it.
  std::erase(model.words, "model.multi_latent_attention=true");
  launch.lacks.insert(launch.lacks.end(), model.lacks.begin(), model.lacks.end());
  if (any_mixer(request.model, &Mixers::mamba))
    launch.lacks.emplace_back("Mamba layers: pretrain_bridge.py builds a GPT model; use --launch megatron");
  std::vector<std::string> parallel = launch.flags;
  const std::vector<std::string> stated = stated_words(request);
  parallel.insert(parallel.end(), stated.begin(), stated.end());
  // An override with brackets is one word of the shell.
  for (std::vector<std::string>* words : {&model.words, &parallel}) {
    for (std::string& word : *words) {
      if (word.ends_with('"')) continue;
      std::erase(word, '\'');
      if (word.find('[') != std::string::npos) word = "'" + word + "'";
    }
  }
  std::vector<UserVariable> variables{{"TRAIN_ITERS", "50", "iterations"},
                                      {"LEARNING_RATE", "1e-4", "peak learning rate"}};
  std::vector<std::string> training{"train.train_iters=\"$TRAIN_ITERS\"", "optimizer.lr=\"$LEARNING_RATE\"",
                                    "scheduler.lr_warmup_iters=0", "logger.log_interval=1"};
  if (request.strategy.lora.rank > 0) {  // [training/config.py:1627]
    variables.push_back(
        {"PRETRAINED_CHECKPOINT", "./pretrained", "folder of the weights that adapters go with"});
    training.emplace_back("checkpoint.pretrained_checkpoint=\"$PRETRAINED_CHECKPOINT\"");
  }
  const Script script{.variables = std::move(variables),
                      .arrays = {{"MODEL_ARGS", std::move(model.words)},
                                 {"PARALLEL_ARGS", std::move(parallel)},
                                 {"TRAINING_ARGS", std::move(training)}},
                      .program = "pretrain_bridge.py",
                      .setup = {},
                      .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"pretrain_bridge.py", bridge_program(request, launch)});
}

namespace {

// Fields of a strategy that NeMo's configuration has no key for, where they differ from its defaults.
std::vector<std::string> nemo_lacks(const Request& request) {
  const Strategy& strategy = request.strategy;
  const Transformer& model = request.model;
  std::vector<std::string> lacks;
  const auto lack = [&](bool is, std::string what) {
    if (is) lacks.push_back(std::move(what));
  };
  lack(strategy.context_parallel > 1 && strategy.cp_comm != CpComm::p2p,
       "--cp-comm " + std::string(name_of(strategy.cp_comm)) + ": NeMo's configuration has no key for it");
  lack(any_experts(model) && sends_once_to_each_rank(strategy.moe_dispatcher),
       "--moe-dispatcher " + std::string(name_of(strategy.moe_dispatcher)) +
           ": NeMo's configuration has no key for it");
  lack(any_experts(model) && strategy.expert_tensor_parallel != strategy.tensor_parallel,
       "--expert-tensor-parallel: NeMo's configuration splits experts over the TP ranks");
  lack(strategy.overlap_expert_all_to_all,
       "--overlap-expert-all-to-all: NeMo's configuration has no key for it");
  lack(stage_layout(model.layers, strategy) == StageLayout::uneven,
       "--stage-layers: NeMo's configuration has no key for it");
  lack(strategy.recompute.policy == RecomputePolicy::ops,
       "--recompute-ops: NeMo's configuration has no key for it");
  lack(runs_fsdp(strategy), "--data-sharding " + std::string(name_of(strategy.data_sharding)) +
                                ": NeMo's configuration has PyTorch's FSDP alone");
  lack(strategy.shard_size > 0, "--shard-size: NeMo's configuration shards over all ranks");
  lack(strategy.optimizer.kind != OptimizerKind::adam,
       "--optimizer " + std::string(name_of(strategy.optimizer.kind)) + ": only Adam is written here");
  lack(!keeps_fp32(strategy.optimizer), "moments of 16 bits: NeMo's configuration has no key for them");
  lack(offloads(strategy.offload), "offloading: NeMo's configuration supports only cpu_offloading of layers");
  lack(strategy.precision != Precision::bf16 && strategy.precision != Precision::fp8_delayed,
       "--precision " + std::string(name_of(strategy.precision)) +
           ": NeMo's configuration supports BF16 and delayed scaling");
  lack(request.software.cuda_graphs != CudaGraphs::none, "CUDA graphs: this release has no cuda_graph_impl");
  lack(model.mtp_layers > 0, "multi-token prediction: NeMo's configuration has no key for it");
  lack(any_layer(model,
                 [](const Architecture& layer) {
                   return layer.latent_attention.has_value() || has_mixer(layer.mixers) || layer.window > 0;
                 }),
       "latent attention, sliding windows or mixers such as Mamba: NeMo's configuration has no key for them");
  lack(!model.layer_kinds.empty(), "layers of several kinds: NeMo's configuration has one kind");
  return lacks;
}

std::string_view yaml(bool value) { return value ? "true" : "false"; }

std::string nemo_text(const Request& request, const Launch& launch) {
  const Strategy& strategy = request.strategy;
  const Transformer& model = request.model;
  const Architecture& layer = model.architecture;
  const NodeGrid grid = node_grid(request);
  const Recomputation& recompute = strategy.recompute;
  const auto line = [](std::string_view key, const auto& value) {
    return fmt::format("  {}: {}\n", key, value);
  };
  std::string text = file_title(launch, request);
  text += "name: headroom\nrestore_from_path: null\n\ntrainer:\n";
  text += line("devices", grid.devices_per_node) + line("num_nodes", grid.nodes) +
          line("accelerator", "gpu") + line("precision", "bf16") + line("max_steps", tried_iterations) +
          line("max_epochs", -1) + line("log_every_n_steps", 1) +
          line("val_check_interval", tried_iterations) + line("limit_val_batches", 0) +
          line("use_distributed_sampler", "false") + line("logger", "false") +
          line("enable_checkpointing", "false");
  text += "\nexp_manager: null\n\nmodel:\n  mcore_gpt: true\n";
  text += line("micro_batch_size", strategy.micro_batch) +
          line("global_batch_size", request.workload.global_batch) +
          line("tensor_model_parallel_size", strategy.tensor_parallel) +
          line("pipeline_model_parallel_size", strategy.pipeline_parallel);
  text += strategy.virtual_pipeline > 1 && stage_layout(model.layers, strategy) == StageLayout::even
              ? line("virtual_pipeline_model_parallel_size", strategy.virtual_pipeline)
              : line("virtual_pipeline_model_parallel_size", "null");
  text += line("context_parallel_size", strategy.context_parallel) +
          line("expert_model_parallel_size", layer.experts ? strategy.expert_parallel : 1) +
          line("sequence_parallel", yaml(strategy.sequence_parallel && strategy.tensor_parallel > 1)) +
          line("encoder_seq_length", request.workload.sequence) +
          line("max_position_embeddings", std::max(request.workload.sequence, model.max_positions)) +
          line("num_layers", model.layers) + line("hidden_size", model.hidden) +
          line("ffn_hidden_size", layer.experts ? layer.experts->feedforward : model.feedforward) +
          line("num_attention_heads", model.heads);
  text += model.key_value_heads != model.heads ? line("num_query_groups", model.key_value_heads)
                                               : line("num_query_groups", "null");
  text +=
      line("kv_channels", model.head_size) +
      line("normalization", layer.normalization == Normalization::rms_norm ? "rmsnorm" : "layernorm") +
      line("activation", layer.activation == Activation::swiglu         ? "fast-swiglu"
                         : layer.activation == Activation::squared_relu ? "squared-relu"
                                                                        : "gelu") +
      line("bias", yaml(layer.linear_bias)) +
      line("position_embedding_type", layer.positions == Positions::learned ? "learned_absolute" : "rope") +
      line("hidden_dropout", layer.hidden_dropout ? "0.1" : "0.0") +
      line("attention_dropout", layer.attention_dropout ? "0.1" : "0.0") +
      line("share_embeddings_and_output_weights", yaml(layer.tied_embeddings)) +
      line("make_vocab_size_divisible_by", model.vocabulary_multiple) +
      line("override_vocab_size", model.vocabulary) + line("transformer_engine", "true") +
      line("megatron_amp_O2", "true");
  if (layer.qk_norm == QkNorm::per_head) text += line("qk_layernorm", "true");
  if (layer.experts) {
    text += line("num_moe_experts", layer.experts->count) +
            line("moe_router_topk", layer.experts->per_token) +
            line("moe_token_dispatcher_type", name_of(strategy.moe_dispatcher)) +
            line("moe_grouped_gemm", "true");
  }
  const bool full = recompute.policy == RecomputePolicy::full;
  text += full ? line("activations_checkpoint_granularity", "full") +
                     line("activations_checkpoint_method",
                          recompute.layers == 0 ? "uniform" : name_of(recompute.method)) +
                     line("activations_checkpoint_num_layers", std::max<std::int64_t>(recompute.layers, 1))
               : line("activations_checkpoint_granularity",
                      recompute.policy == RecomputePolicy::selective ? "selective" : "null");
  text += line("ub_tp_comm_overlap", yaml(request.software.overlap_tensor_parallel == TensorOverlap::full &&
                                          strategy.tensor_parallel > 1 && strategy.sequence_parallel)) +
          line("overlap_p2p_comm", yaml(strategy.virtual_pipeline > 1 && request.software.overlap_p2p)) +
          line("batch_p2p_comm", yaml(strategy.virtual_pipeline == 1 || !request.software.overlap_p2p)) +
          line("gradient_accumulation_fusion",
               yaml(request.software.gradient_accumulation == GradientAccumulation::fused)) +
          line("grad_allreduce_chunk_size_mb", 125);
  if (strategy.precision == Precision::fp8_delayed)
    text += line("fp8", "true") + line("fp8_hybrid", "true") +
            line("fp8_params", yaml(strategy.fp8_param_gather));
  text += "  tokenizer:\n    library: megatron\n    type: GPT2BPETokenizer\n";
  text += "  data:\n    data_impl: mock\n    data_prefix: []\n    splits_string: '99,1,0'\n";
  text += fmt::format("    seq_length: {}\n    num_workers: 1\n", request.workload.sequence);
  text += fmt::format(
      "  optim:\n    name: {}\n    lr: 1.0e-4\n    weight_decay: 0.1\n    overlap_grad_sync: {}\n"
      "    overlap_param_sync: {}\n    grad_sync_dtype: {}\n",
      shards_optimizer(strategy) ? "mcore_distributed_optim" : "megatron_fused_adam",
      yaml(request.software.overlap_grad_reduce),
      yaml(request.software.overlap_param_gather && shards_optimizer(strategy)),
      strategy.gradient_dtype == Dtype::fp32 ? "fp32" : "bf16");
  return text;
}

}  // namespace

void write_nemo(const Request& request, Launch& launch) {
  add_environment(request, launch);
  const std::vector<std::string> lacks = nemo_lacks(request);
  launch.lacks.insert(launch.lacks.end(), lacks.begin(), lacks.end());
  const Script script{
      .variables = {{"NEMO_PATH", "/opt/NeMo", "a checkout of the release above"}},
      .arrays = {},
      .program =
          "\"$NEMO_PATH/examples/nlp/language_modeling/megatron_gpt_pretraining.py\" --config-path "
          "\"$PWD\" --config-name headroom",
      .setup = {},
      .started = {}};
  launch.command = start_command(request, "launch.sh");
  launch.files.push_back({"launch.sh", script_text(script, launch, request)});
  launch.files.push_back({"headroom.yaml", nemo_text(request, launch)});
}

}  // namespace headroom
