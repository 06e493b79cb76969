// What Megatron-LM's own validation of arguments refuses, at Megatron-LM d98e8a64ddf3 (2026-08-22).
#include "interop/launch_in/megatron_checks.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace headroom {
namespace {

using Checked = CheckedArguments;

// `sequence` stands for rules that no field of a strategy is part of.
constexpr auto megatron_rows = std::to_array<MegatronCheck>({
    // The environment.
    {"CUDA_DEVICE_MAX_CONNECTIONS", "tensor_parallel context_parallel",
     [](const Checked& it) { return it.one_connection() && it.differs("CUDA_DEVICE_MAX_CONNECTIONS", "1"); },
     "must be 1 with TP or CP on GPUs before Blackwell", "training/arguments.py:1477"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "data_sharding",
     [](const Checked& it) { return it.fsdp() && it.text("CUDA_DEVICE_MAX_CONNECTIONS") == "1"; },
     "must not be 1 with --use-megatron-fsdp", "training/arguments.py:1166"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "data_sharding",
     [](const Checked& it) {
       return it.on("use_torch_fsdp2") && it.text("CUDA_DEVICE_MAX_CONNECTIONS") == "1";
     },
     "must not be 1 with --use-torch-fsdp2", "training/arguments.py:1048"},
    {"NVTE_CPU_OFFLOAD_V1", "offload_modules",
     [](const Checked& it) {
       return it.on("fine_grained_activation_offloading") && it.differs("NVTE_CPU_OFFLOAD_V1", "1");
     },
     "must be 1 with --fine-grained-activation-offloading", "training/arguments.py:1939"},
    {"NCCL_GRAPH_REGISTER", "sequence",
     [](const Checked& it) {
       return it.text("cuda_graph_impl") == "transformer_engine" && it.expandable_segments() &&
              it.differs("NCCL_GRAPH_REGISTER", "0");
     },
     "must be 0 with --cuda-graph-impl transformer_engine and expandable_segments:True",
     "training/arguments.py:1962"},
    // Recomputation.
    {"recompute_granularity", "recompute",
     [](const Checked& it) {
       return it.recomputed() == "full" && it.lacks("recompute_method");
     },
     "needs --recompute-method uniform or block", "core/transformer/transformer_config.py:1913"},
    {"recompute_granularity", "recompute",
     [](const Checked& it) { return it.recomputed() == "full" && it.lacks("recompute_num_layers"); },
     "needs --recompute-num-layers", "core/transformer/transformer_config.py:1919"},
    {"recompute_method", "recompute",
     [](const Checked& it) { return it.recomputed() == "selective" && it.known("recompute_method"); },
     "needs --recompute-granularity full, not selective", "training/arguments.py:1426"},
    {"recompute_num_layers", "recompute",
     [](const Checked& it) { return it.recomputed() == "selective" && it.known("recompute_num_layers"); },
     "needs --recompute-granularity full, not selective", "core/transformer/transformer_config.py:1927"},
    {"recompute_modules", "recompute_ops",
     [](const Checked& it) {
       return it.recomputed() == "selective" && it.names({"recompute_modules"}, "moe_act") &&
              it.off("moe_grouped_gemm");
     },
     "needs --moe-grouped-gemm to recompute moe_act", "core/transformer/transformer_config.py:1964"},
    // Overlaps.
    {"overlap_param_gather", "data_sharding",
     [](const Checked& it) {
       return it.on("overlap_param_gather") && it.off("use_distributed_optimizer") && !it.may_be_fsdp() &&
              it.text_or("optimizer", "adam") != "dist_muon";
     },
     "needs --use-distributed-optimizer", "training/arguments.py:1025"},
    {"overlap_param_gather", "data_sharding",
     [](const Checked& it) {
       return it.on("overlap_param_gather") && it.off("overlap_grad_reduce") &&
              it.lacks("data_parallel_sharding_strategy");  // optim_grads turns it on
     },
     "needs --overlap-grad-reduce", "training/arguments.py:1028"},
    {"overlap_param_gather_with_optimizer_step", "data_sharding",
     [](const Checked& it) {
       return it.on("overlap_param_gather_with_optimizer_step") && it.off("overlap_param_gather");
     },
     "needs --overlap-param-gather", "training/arguments.py:1069"},
    {"overlap_param_gather_with_optimizer_step", "virtual_pipeline",
     [](const Checked& it) {
       return it.on("overlap_param_gather_with_optimizer_step") &&
              it.lacks("num_layers_per_virtual_pipeline_stage") &&
              it.lacks("num_virtual_stages_per_pipeline_rank") &&
              it.lacks("pipeline_model_parallel_layout") && it.lacks("hybrid_layer_pattern");
     },
     "needs several virtual stages per pipeline rank", "training/arguments.py:1071"},
    {"tp_comm_overlap", "sequence_parallel",
     [](const Checked& it) { return it.on("tp_comm_overlap") && it.off("sequence_parallel"); },
     "needs --sequence-parallel", "training/arguments.py:1442"},
    {"delay_wgrad_compute", "overlap_expert_all_to_all",
     [](const Checked& it) {
       return it.on("delay_wgrad_compute") && it.off("overlap_moe_expert_parallel_comm");
     },
     "needs --overlap-moe-expert-parallel-comm", "core/transformer/transformer_config.py:3075"},
    {"defer_embedding_wgrad_compute", "pipeline_parallel",
     [](const Checked& it) {
       return it.on("defer_embedding_wgrad_compute") && it.count("pipeline_parallel") == 1 &&
              !(it.has("pipeline_model_parallel_size") && !it.known("pipeline_model_parallel_size"));
     },
     "needs --pipeline-model-parallel-size of at least 2", "core/model_parallel_config.py:545"},
    {"defer_embedding_wgrad_compute", "sequence",
     [](const Checked& it) {
       return it.on("defer_embedding_wgrad_compute") && it.on("no_gradient_accumulation_fusion");
     },
     "is not available with --no-gradient-accumulation-fusion", "core/model_parallel_config.py:550"},
    // Sizes.
    {"max_position_embeddings", "sequence",
     [](const Checked& it) {
       return it.number("max_position_embeddings") > 0 &&
              it.number("max_position_embeddings") < it.number("seq_length");
     },
     "must be at least --seq-length", "training/arguments.py:1354"},
    {"num_layers", "sequence",
     [](const Checked& it) { return it.megatron_program() && it.lacks("max_position_embeddings"); },
     "needs --max-position-embeddings", "training/arguments.py:1314"},
    {"num_layers", "micro_batch",
     [](const Checked& it) {
       return it.megatron_program() && it.lacks("micro_batch_size") && it.lacks("batch_size");
     },
     "needs --micro-batch-size", "training/arguments.py:693"},
    {"squared_relu quick_geglu", "sequence",
     [](const Checked& it) { return (it.on("squared_relu") || it.on("quick_geglu")) && it.on("swiglu"); },
     "is not available with --swiglu", "training/argument_utils.py:321"},
    {"rope_type", "sequence",
     [](const Checked& it) {
       return it.on("multi_latent_attention") && it.text("position_embedding_type") == "rope" &&
              it.text("rope_type") == "rope" && it.off("no_rope_fusion");
     },
     "needs --no-rope-fusion: fused rotary positions of MLA are YaRN's",
     "core/transformer/transformer_config.py:3345", 13},
    {"multi_latent_attention", "sequence",
     [](const Checked& it) { return it.on("multi_latent_attention") && it.on("group_query_attention"); },
     "is not available with --group-query-attention", "training/arguments.py:1974", 16},
    {"mtp_num_layers", "sequence",
     [](const Checked& it) {
       return it.on("mtp_num_layers") && it.off("use_rotary_position_embeddings") &&
              it.off("no_position_embedding") &&
              it.text_or("position_embedding_type", "learned_absolute") == "learned_absolute";
     },
     "needs --position-embedding-type rope or none", "training/arguments.py:883"},
    // Precision and the optimizer.
    {"fp16", "precision", [](const Checked& it) { return it.on("fp16") && it.on("bf16"); },
     "is not available with --bf16", "training/arguments.py:1196"},
    {"fp16_lm_cross_entropy", "precision",
     [](const Checked& it) { return it.on("fp16_lm_cross_entropy") && it.off("fp16"); }, "needs --fp16",
     "training/arguments.py:1373"},
    {"fp32_residual_connection", "precision",
     [](const Checked& it) {
       return it.on("fp32_residual_connection") && it.off("fp16") && it.off("bf16");
     },
     "needs --bf16 or --fp16", "training/arguments.py:1375"},
    {"optimizer_cpu_offload", "optimizer_offload_fraction",
     [](const Checked& it) {
       return it.on("optimizer_cpu_offload") && it.off("use_precision_aware_optimizer");
     },
     "needs --use-precision-aware-optimizer", "training/arguments.py:1885"},
    {"main_grads_dtype", "gradient_dtype",
     [](const Checked& it) {
       return it.narrow("main_grads_dtype") && it.off("use_precision_aware_optimizer");
     },
     "needs --use-precision-aware-optimizer", "core/optimizer/optimizer_config.py:469"},
    {"main_params_dtype", "main_params_dtype",
     [](const Checked& it) {
       return it.narrow("main_params_dtype") && it.off("use_precision_aware_optimizer");
     },
     "needs --use-precision-aware-optimizer", "core/optimizer/optimizer_config.py:472"},
    {"exp_avg_dtype exp_avg_sq_dtype", "exp_avg_dtype exp_avg_sq_dtype",
     [](const Checked& it) {
       return (it.narrow("exp_avg_dtype") || it.narrow("exp_avg_sq_dtype")) &&
              it.off("use_precision_aware_optimizer");
     },
     "needs --use-precision-aware-optimizer", "core/optimizer/optimizer_config.py:475"},
    {"main_grads_dtype", "gradient_dtype",
     [](const Checked& it) {
       return it.narrow("main_grads_dtype") && it.on("bf16") && it.on("accumulate_allreduce_grads_in_fp32");
     },
     "must be fp32 with --accumulate-allreduce-grads-in-fp32", "training/arguments.py:1210"},
    {"cross_entropy_fusion_impl", "sequence",
     [](const Checked& it) {
       return it.on("cross_entropy_loss_fusion") && it.text("cross_entropy_fusion_impl") == "te";
     },
     "is not available with --cross-entropy-loss-fusion", "training/arguments.py:1697", 19},
    // Pipelines and contexts.
    {"num_virtual_stages_per_pipeline_rank pipeline_model_parallel_layout", "virtual_pipeline",
     [](const Checked& it) {
       constexpr std::array<std::string_view, 3> ways{"num_layers_per_virtual_pipeline_stage",
                                                      "num_virtual_stages_per_pipeline_rank",
                                                      "pipeline_model_parallel_layout"};
       return std::count_if(ways.begin(), ways.end(), [&](std::string_view way) { return it.on(way); }) > 1;
     },
     "is one of three that exclude each other: --num-layers-per-virtual-pipeline-stage, "
     "--num-virtual-stages-per-pipeline-rank, --pipeline-model-parallel-layout",
     "training/arguments.py:928"},
    {"decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers", "virtual_pipeline",
     [](const Checked& it) { return it.counts_ends() && it.on("num_layers_per_virtual_pipeline_stage"); },
     "is not available with --num-layers-per-virtual-pipeline-stage: use "
     "--num-virtual-stages-per-pipeline-rank",
     "training/arguments.py:955"},
    {"decoder_first_pipeline_num_layers decoder_last_pipeline_num_layers", "pipeline_parallel",
     [](const Checked& it) { return it.counts_ends() && it.accounts(); },
     "is not available with --account-for-embedding-in-pipeline-split or "
     "--account-for-loss-in-pipeline-split",
     "core/transformer/transformer_config.py:2229"},
    {"pipeline_model_parallel_layout", "pipeline_parallel",
     [](const Checked& it) {
       return it.on("pipeline_model_parallel_layout") && (it.counts_ends() || it.accounts());
     },
     "states all stages: drop the layers of the first and the last stage and --account-for-...",
     "core/transformer/transformer_config.py:2251"},
    {"pipeline_model_parallel_layout", "pipeline_parallel",
     [](const Checked& it) {
       return it.text("pipeline_model_parallel_layout").find('m') != std::string::npos &&
              it.off("mtp_num_layers") && it.off("num_mtp_predictor");
     },
     "has a stage with m, a layer of multi-token prediction: it needs --mtp-num-layers",
     "core/transformer/pipeline_parallel_layer_layout.py:112"},
    {"cp_comm_type", "cp_comm",
     [](const Checked& it) {
       return it.names({"cp_comm_type"}, "a2a+p2p") && it.lacks("hierarchical_context_parallel_sizes");
     },
     "needs --hierarchical-context-parallel-sizes", "training/arguments.py:583"},
    // Fully sharded data parallelism.
    {"use_megatron_fsdp", "data_sharding",
     [](const Checked& it) {
       const std::string format = it.text_or("ckpt_format", "torch_dist");
       return it.on("use_megatron_fsdp") && !format.empty() && format != "fsdp_dtensor";
     },
     "needs --ckpt-format fsdp_dtensor", "training/arguments.py:1169", 18},
    {"use_torch_fsdp2", "data_sharding",
     [](const Checked& it) { return it.on("use_torch_fsdp2") && it.on("use_distributed_optimizer"); },
     "is not available with --use-distributed-optimizer", "training/arguments.py:1038"},
    {"use_torch_fsdp2", "data_sharding",
     [](const Checked& it) { return it.on("use_torch_fsdp2") && it.off("no_gradient_accumulation_fusion"); },
     "needs --no-gradient-accumulation-fusion", "training/arguments.py:1040"},
    {"use_torch_fsdp2", "data_sharding",
     [](const Checked& it) {
       return it.on("use_torch_fsdp2") && it.off("untie_embeddings_and_output_weights");
     },
     "needs --untie-embeddings-and-output-weights", "training/arguments.py:1044"},
    {"use_torch_fsdp2", "data_sharding",
     [](const Checked& it) { return it.on("use_torch_fsdp2") && it.on("fp16"); },
     "is not available with --fp16", "training/arguments.py:1046"},
    // Experts.
    {"expert_model_parallel_size", "sequence",
     [](const Checked& it) { return it.number("expert_model_parallel_size") > 1 && it.no_experts(); },
     "needs --num-experts", "training/arguments.py:1656"},
    {"moe_ffn_hidden_size", "sequence",
     [](const Checked& it) { return it.on("moe_ffn_hidden_size") && it.no_experts(); },
     "needs --num-experts", "core/transformer/transformer_config.py:1702", 18},
    {"moe_enable_deepep", "moe_dispatcher",
     [](const Checked& it) {
       const std::string type = it.text_or("moe_token_dispatcher_type", "allgather");
       return it.on("moe_enable_deepep") && !type.empty() && type != "flex";
     },
     "needs --moe-token-dispatcher-type flex", "core/transformer/transformer_config.py:1744"},
    {"moe_token_dispatcher_type", "moe_dispatcher",
     [](const Checked& it) { return it.experts() && it.text("moe_token_dispatcher_type") == "alltoall_seq"; },
     "must be allgather, alltoall or flex", "core/transformer/moe/moe_layer.py:329", 18},
    {"moe_router_topk", "sequence",
     [](const Checked& it) {
       return it.experts() && it.number("moe_router_topk") == 1 && it.off("moe_router_pre_softmax") &&
              it.text_or("moe_router_score_function", "softmax") == "softmax" &&
              it.text_or("moe_router_load_balancing_type", "aux_loss") != "sinkhorn";
     },
     "needs --moe-router-pre-softmax to choose one expert", "core/transformer/transformer_config.py:2661", 9},
    {"moe_router_enable_expert_bias", "sequence",
     [](const Checked& it) {
       return it.on("moe_router_enable_expert_bias") &&
              it.text_or("moe_router_score_function", "softmax") == "softmax";
     },
     "needs --moe-router-score-function sigmoid", "core/transformer/transformer_config.py:2617"},
    {"moe_expert_capacity_factor", "sequence",
     [](const Checked& it) {
       return it.on("moe_expert_capacity_factor") &&
              it.text("moe_router_load_balancing_type") == "sinkhorn";
     },
     "is not available with --moe-router-load-balancing-type sinkhorn",
     "core/transformer/transformer_config.py:1851"},
    {"moe_latent_size", "sequence",
     [](const Checked& it) { return it.on("moe_latent_size") && it.on("moe_shared_expert_overlap"); },
     "is not available with --moe-shared-expert-overlap", "core/transformer/moe/moe_layer.py:479", 18},
    // CUDA graphs.
    {"cuda_graph_impl", "sequence",
     [](const Checked& it) {
       return it.text("cuda_graph_impl") == "full_iteration" &&
              it.off("no_check_for_nan_in_loss_and_grad") && it.off("fp16");
     },
     "needs --no-check-for-nan-in-loss-and-grad", "training/arguments.py:1236"},
    {"cuda_graph_modules", "sequence",
     [](const Checked& it) {
       return it.text("cuda_graph_impl") == "full_iteration" && it.on("cuda_graph_modules");
     },
     "is not available with --cuda-graph-impl full_iteration", "training/arguments.py:1969"},
    {"cuda_graph_modules cuda_graph_scope", "sequence",
     [](const Checked& it) {
       return it.no_experts() && (it.graphs_module("moe") || it.graphs_module("moe_router"));
     },
     "must not name moe or moe_router: the model has no experts",
     "core/transformer/transformer_config.py:2825"},
    {"cuda_graph_modules cuda_graph_scope", "sequence",
     [](const Checked& it) { return it.graphs_module("mlp") && it.every_layer_has_experts(); },
     "must not name mlp: all layers have experts", "core/transformer/transformer_config.py:2834"},
    {"cuda_graph_modules cuda_graph_scope", "moe_pad_to_capacity",
     [](const Checked& it) {
       return it.experts() && it.graphs_module("moe") && it.off("moe_pad_expert_input_to_capacity");
     },
     "needs --moe-pad-expert-input-to-capacity to record moe",
     "core/transformer/transformer_config.py:2838"},
    // The job.
    {"mock_data", "sequence",
     [](const Checked& it) { return it.on("mock_data") && (it.has("data_path") || it.has("train_data_path")); },
     "is not available with --data-path", "training/arguments.py:1679"},
    {"save", "sequence",
     [](const Checked& it) {
       return it.megatron_program() && it.has("save") && it.lacks("save_interval");
     },
     "needs --save-interval", "training/arguments.py:1362"},
    {"train_samples", "sequence",
     [](const Checked& it) { return it.on("train_iters") && it.on("train_samples"); },
     "is not available with --train-iters", "training/arguments.py:1279"},
});

// Variables that the environment must hold where the script does not set them.
void assume_environment(const Checked& asked, RunBuilder& run) {
  const auto assume = [&](std::string_view name, int value, std::string_view because) {
    run.assume(
        fmt::format("{} is {} in the environment: the script does not set it, and {}", name, value, because));
  };
  if (asked.one_connection() && asked.unset("CUDA_DEVICE_MAX_CONNECTIONS"))
    assume("CUDA_DEVICE_MAX_CONNECTIONS", 1, "Megatron-LM needs it with TP or CP on GPUs before Blackwell");
  if (asked.on("fine_grained_activation_offloading") && asked.unset("NVTE_CPU_OFFLOAD_V1"))
    assume("NVTE_CPU_OFFLOAD_V1", 1, "--fine-grained-activation-offloading needs it");
  if (asked.text("cuda_graph_impl") == "transformer_engine" && asked.expandable_segments() &&
      asked.unset("NCCL_GRAPH_REGISTER"))
    assume("NCCL_GRAPH_REGISTER", 0, "CUDA graphs need it with expandable_segments:True");
}

}  // namespace

std::span<const MegatronCheck> megatron_checks() { return megatron_rows; }

void check_megatron_arguments(const MegatronArguments& arguments, RunBuilder& run) {
  // Older stacks lack most rules, forks and named models have defaults of their own.
  constexpr std::array<std::string_view, 2> recent{"megatron-core-2025", "nemo-2025"};
  if (run.so_far().framework != "Megatron-LM" || !contains(recent, run.software()) ||
      !arguments.model.empty())
    return;
  const Checked asked(arguments, run);
  const int release = asked.release();
  for (const MegatronCheck& check : megatron_rows) {
    if (!check.broken(asked)) continue;
    const Written* fault = nullptr;
    for (const std::string_view name : parts_of(check.arguments, ' ')) {
      if (fault == nullptr) fault = asked.find(name);
    }
    if (fault == nullptr) continue;
    if (release < check.since) {
      run.assume(fmt::format("Megatron-LM of a release before core_v0.{}.0: from then on {} {}", check.since,
                             fault->as_written, check.rule),
                 fault);
      continue;
    }
    LaunchRefusal refusal{.fields = {},
                          .rule = std::string(check.rule),
                          .source = fmt::format("Megatron-LM, {}", check.source),
                          .written = fault->as_written,
                          .at = fault->at};
    for (const std::string_view field : parts_of(check.fields, ' ')) refusal.fields.emplace_back(field);
    run.refuse(std::move(refusal));
  }
  assume_environment(asked, run);
}

}  // namespace headroom
