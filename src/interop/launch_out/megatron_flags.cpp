#include "interop/launch_out/megatron_flags.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "headroom/model/expert_load.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "interop/launch_out/flag_list.hpp"
#include "interop/launch_out/megatron_words.hpp"

namespace headroom {
namespace {

// Names are those of Megatron's configuration: with dashes they are Megatron-LM's flags, and behind their section
// Megatron-Bridge's overrides.
class MegatronFlags {
 public:
  MegatronFlags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                const Software& software)
      : model_(model),
        strategy_(strategy),
        workload_(workload),
        software_(software),
        bridge_(*software.launcher == Launcher::megatron_bridge),
        zero_bubble_(*software.launcher == Launcher::zero_bubble),
        words_(bridge_) {}

  LaunchFlags run() {
    add_sizes();
    add_schedule();
    add_experts();
    add_sharding();
    add_overlaps();
    add_recomputation();
    add_precision();
    add_stored();
    add_optimizer();
    add_offload();
    add_graphs();
    add_adapters();
    return {.launcher = *software_.launcher, .flags = words_.take(), .lacks = {}};
  }

 private:
  void add(std::string_view section, std::string_view name, std::string_view value) {
    words_.add(section, name, value);
  }
  void add(std::string_view section, std::string_view name, std::int64_t value) {
    words_.add(section, name, std::to_string(value));
  }
  void on(std::string_view section, std::string_view name) { words_.on(section, name); }

  void add_sizes() {
    add("model", "tensor_model_parallel_size", strategy_.tensor_parallel);
    if (strategy_.sequence_parallel && strategy_.tensor_parallel > 1) on("model", "sequence_parallel");
    add("model", "pipeline_model_parallel_size", strategy_.pipeline_parallel);
    if (strategy_.context_parallel > 1) {
      add("model", "context_parallel_size", strategy_.context_parallel);
      const bool gathers = strategy_.cp_comm == CpComm::all_gather;
      const bool both = strategy_.cp_comm == CpComm::a2a_p2p;
      if (!zero_bubble_)
        add("model", "cp_comm_type", gathers ? "allgather" : both ? "a2a+p2p" : name_of(strategy_.cp_comm));
      if (both && !zero_bubble_) {
        const std::int64_t inner = context_inner(model_, strategy_);
        add("model", "hierarchical_context_parallel_sizes",
            words_.listed({std::to_string(inner), std::to_string(strategy_.context_parallel / inner)}));
      }
    }
    add("train", "micro_batch_size", strategy_.micro_batch);
    add("train", "global_batch_size", workload_.global_batch);
    // The field of Megatron-Core's data set; Bridge's seq_length of it is a property, which no override can name
    // [Megatron-Bridge, training/config.py, GPTDatasetConfig].
    add("dataset", bridge_ ? "sequence_length" : "seq_length", workload_.sequence);
    if (bridge_) add("model", "seq_length", workload_.sequence);
  }

  void add_schedule() {
    const ScheduleKind schedule = strategy_.schedule;
    const std::int64_t p = strategy_.pipeline_parallel;
    const bool usual =
        schedule == ScheduleKind::one_forward_one_backward || schedule == ScheduleKind::interleaved;
    add_stages();
    if (p == 1) return;
    if (strategy_.keep_pipeline_outputs && bridge_) add("model", "deallocate_pipeline_outputs", "false");
    if (usual || !zero_bubble_) return;
    on("model", "enable_zero_bubble");
    switch (schedule) {
      case ScheduleKind::zero_bubble_h1: add("model", "zero_bubble_max_pending_backward", p); break;
      case ScheduleKind::zero_bubble_h2: add("model", "zero_bubble_max_pending_backward", 2 * p - 1); break;
      case ScheduleKind::zero_bubble_2p: add("model", "zero_bubble_max_pending_backward", 2 * p); break;
      default: on("model", "zero_bubble_v_schedule"); break;
    }
    if (repeats_block(schedule))
      add("model", "zero_bubble_v_schedule_mem_setup", schedule == ScheduleKind::v_half ? "half" : "min");
  }

  void add_stages() {
    const std::int64_t m = strategy_.virtual_pipeline;
    const std::vector<std::int64_t> by_stage = layers_by_stage(model_.layers, strategy_);
    const bool uneven = stage_layout(model_.layers, strategy_) == StageLayout::uneven;
    // A pattern says the stages itself; no other flag may [training/arguments.py:814].
    if (const auto pattern = hybrid_pattern(model_, by_stage); pattern && !zero_bubble_) {
      add("model", "hybrid_layer_pattern", words_.quoted(*pattern));
    } else if (uneven && software_.uneven_stages) {
      add("model", "pipeline_model_parallel_layout",
          words_.quoted(megatron_layout(by_stage, model_.mtp_layers)));
      // Its overlaps are set before it reads the layout [training/comm_overlap.py:456].
      if (bridge_ && m > 1) add("model", "virtual_pipeline_model_parallel_size", m);
    } else if (strategy_.pipeline_parallel > 1 && !uneven && m > 1 && goes_round(strategy_.schedule)) {
      const char* const name = zero_bubble_ ? "num_layers_per_virtual_pipeline_stage"
                               : bridge_    ? "virtual_pipeline_model_parallel_size"
                                            : "num_virtual_stages_per_pipeline_rank";
      add("model", name, zero_bubble_ ? model_.layers / (strategy_.pipeline_parallel * m) : m);
    }
    if (strategy_.microbatch_group_size > 0) {
      add("model",
          bridge_ ? "microbatch_group_size_per_vp_stage" : "microbatch_group_size_per_virtual_pipeline_stage",
          strategy_.microbatch_group_size);
    }
  }

  void add_experts() {
    if (!any_experts(model_)) return;
    add("model", "expert_model_parallel_size", strategy_.expert_parallel);
    if (!zero_bubble_) add("model", "expert_tensor_parallel_size", strategy_.expert_tensor_parallel);
    const std::string dispatcher(name_of(strategy_.moe_dispatcher));
    const bool flex = sends_once_to_each_rank(strategy_.moe_dispatcher);
    add("model", "moe_token_dispatcher_type", flex ? "flex" : dispatcher);
    if (flex) add("model", "moe_flex_dispatcher_backend", dispatcher);
    // Otherwise each expert is a module of its own; moe_act recomputes the grouped one alone
    // [core/transformer/transformer_config.py:1964].
    if (runs_transformer_engine(software_)) on("model", "moe_grouped_gemm");
    if (software_.overlap_shared_experts) on("model", "moe_shared_expert_overlap");
    if (strategy_.overlap_expert_all_to_all) {
      on(bridge_ ? "comm_overlap" : "model", "overlap_moe_expert_parallel_comm");
      if (software_.delay_weight_gradients) on(bridge_ ? "comm_overlap" : "model", "delay_wgrad_compute");
    }
    if (strategy_.moe_router_padding) on("model", "moe_router_padding_for_quantization");
    if (!strategy_.moe_pad_to_capacity) return;
    add("model", "moe_expert_capacity_factor", fmt::format("{:g}", capacity_factor(model_)));
    on("model", "moe_pad_expert_input_to_capacity");
  }

  void add_sharding() {
    const std::int64_t ranks = replicas(strategy_);
    switch (strategy_.data_sharding) {
      case DataSharding::none: return;
      case DataSharding::zero1: on(bridge_ ? "ddp" : "optimizer", "use_distributed_optimizer"); break;
      case DataSharding::zero2:
      case DataSharding::zero3:
        on(bridge_ ? "dist" : "ddp", "use_megatron_fsdp");
        add("ddp", "data_parallel_sharding_strategy",
            strategy_.data_sharding == DataSharding::zero2 ? "optim_grads" : "optim_grads_params");
        break;
    }
    if (strategy_.shard_size > 0 && strategy_.shard_size < ranks)
      add(bridge_ ? "ddp" : "optimizer", "num_distributed_optimizer_instances", ranks / strategy_.shard_size);
  }

  void add_overlaps() {
    const char* const section = bridge_ ? "comm_overlap" : "ddp";
    // Without expert TP, TP ranks hold replicas of the experts.
    const AxisSizes sizes = axis_sizes(strategy_);
    const bool reduces =
        replicas(strategy_) > 1 || (any_experts(model_) && replicas(sizes, WeightClass::expert) > 1);
    if (reduces && software_.overlap_grad_reduce) {
      on(section, "overlap_grad_reduce");
      // Megatron-LM's own is this or a million for each replica [training/training.py:2189].
      if (!bridge_ && !zero_bubble_ && software_.bucket_parameters_per_replica == 0)
        add(section, "ddp_bucket_size", software_.bucket_parameters);
    }
    // It needs the overlap above [training/arguments.py:1028].
    if (reduces && software_.overlap_grad_reduce && shards_optimizer(strategy_) &&
        software_.overlap_param_gather)
      on(section, "overlap_param_gather");
    // Megatron-Core refuses it without sequence parallelism [core/transformer/transformer_config.py].
    if (strategy_.tensor_parallel > 1 && strategy_.sequence_parallel &&
        software_.overlap_tensor_parallel == TensorOverlap::full)
      on(section, "tp_comm_overlap");
    if (goes_round(strategy_.schedule) && !software_.overlap_p2p &&
        *software_.launcher == Launcher::megatron_lm)
      on(section, "no_overlap_p2p_communication");
  }

  void add_recomputation() {
    const Recomputation& recompute = strategy_.recompute;
    switch (recompute.policy) {
      case RecomputePolicy::none: return;
      case RecomputePolicy::selective: add("model", "recompute_granularity", "selective"); break;
      case RecomputePolicy::selective_op: return;
      case RecomputePolicy::full:
        add("model", "recompute_granularity", "full");
        add("model", "recompute_method", recompute.layers == 0 ? "uniform" : name_of(recompute.method));
        add("model", "recompute_num_layers", std::max<std::int64_t>(recompute.layers, 1));
        if (recompute.distribute_saved_activations) on("model", "distribute_saved_activations");
        break;
      case RecomputePolicy::ops: {
        add("model", "recompute_granularity", "selective");
        add("model", "recompute_modules", words_.listed(recompute.ops));
        break;
      }
    }
  }

  void add_precision() {
    const Precision precision = strategy_.precision;
    const auto one_of = [&](std::string_view recipe, std::string_view format) {
      add(bridge_ ? "mixed_precision" : "model", bridge_ ? "fp8" : "fp8_format", format);
      add(bridge_ ? "mixed_precision" : "model", "fp8_recipe", recipe);
    };
    on(bridge_ ? "mixed_precision" : "model", "bf16");
    switch (precision) {
      case Precision::bf16: return;
      case Precision::fp8: one_of("tensorwise", "hybrid"); break;
      case Precision::fp8_delayed: one_of("delayed", "hybrid"); break;
      case Precision::fp8_blockwise: one_of("blockwise", "e4m3"); break;
      case Precision::mxfp8: one_of("mxfp8", "e4m3"); break;
      case Precision::nvfp4:
        add(bridge_ ? "mixed_precision" : "model", bridge_ ? "fp4" : "fp4_format", "e2m1");
        add(bridge_ ? "mixed_precision" : "model", "fp4_recipe", "nvfp4");
        break;
    }
    const char* const gather = precision == Precision::nvfp4 ? "fp4_param_gather" : "fp8_param_gather";
    if (strategy_.fp8_param_gather) on(bridge_ ? "mixed_precision" : "model", gather);
    // Megatron-Bridge refuses it otherwise [training/config.py:1495].
    if (strategy_.fp8_param_gather && precision == Precision::mxfp8 &&
        strategy_.data_sharding < DataSharding::zero2)
      on(bridge_ ? "mixed_precision" : "model", "reuse_grad_buf_for_mxfp8_param_ag");
    const PrecisionScope& scope = strategy_.precision_scope;
    if (scope.bf16_layers_at_start > 0 || scope.bf16_layers_at_end > 0) {
      const char* const section = bridge_ ? "mixed_precision" : "model";
      on(section, "first_last_layers_bf16");
      add(section, "num_layers_at_start_in_bf16", scope.bf16_layers_at_start);
      add(section, "num_layers_at_end_in_bf16", scope.bf16_layers_at_end);
    }
    if (scope.attention) on(bridge_ ? "mixed_precision" : "model", "fp8_dot_product_attention");
    if (scope.output_layer) on("model", "fp8_output_proj");
    if (scope.bf16_modules.contains(PrecisionModule::mtp)) on("model", "keep_mtp_spec_in_bf16");
    if (strategy_.tp_only_amax_red) on("model", "tp_only_amax_red");
  }

  void add_stored() {
    if (strategy_.precision_scope.activation_input) on("model", "activation_func_fp8_input_store");
  }

  void add_optimizer() {
    const Optimizer& optimizer = strategy_.optimizer;
    add("optimizer", "optimizer", name_of(optimizer.kind));
    if (sums_in_bf16(strategy_)) {
      if (bridge_) {
        add("mixed_precision", "grad_reduce_in_fp32", "false");
      } else {
        on("ddp", "grad_reduce_in_bf16");
      }
    }
    if (keeps_fp32(optimizer) && strategy_.offload.optimizer.value == 0) return;
    // Offloading needs it too [training/arguments.py:1885].
    on("optimizer", "use_precision_aware_optimizer");
    if (optimizer.main_params == MainParams::fp16) add("optimizer", "main_params_dtype", "fp16");
    if (optimizer.exp_avg != MomentDtype::fp32) add("optimizer", "exp_avg_dtype", name_of(optimizer.exp_avg));
    if (optimizer.exp_avg_sq != MomentDtype::fp32)
      add("optimizer", "exp_avg_sq_dtype", name_of(optimizer.exp_avg_sq));
  }

  void add_offload() {
    const Offload& offload = strategy_.offload;
    if (offload.optimizer.value > 0) {
      on("optimizer", "optimizer_cpu_offload");
      add("optimizer", "optimizer_offload_fraction", fmt::format("{:g}", offload.optimizer.value));
      if (offload.overlaps) on("optimizer", "overlap_cpu_optimizer_d2h_h2d");
    }
    if (!offload.modules.empty()) {
      on("model", "fine_grained_activation_offloading");
      add("model", "offload_modules", words_.listed(offload.modules));
    }
    if (offload.layers > 0) {
      if (bridge_) on("model", "cpu_offloading");
      add("model", "cpu_offloading_num_layers", offload.layers);
    }
  }

  void add_graphs() {
    if (software_.cuda_graphs == CudaGraphs::none || zero_bubble_) return;
    const bool whole = software_.cuda_graphs == CudaGraphs::full_iteration;
    add("model", "cuda_graph_impl", whole ? "full_iteration" : "transformer_engine");
    if (whole) {  // [training/arguments.py:1236]
      if (!bridge_) on("model", "no_check_for_nan_in_loss_and_grad");
      return;
    }
    add("model", "cuda_graph_modules", words_.listed(recorded_modules()));
  }

  // Those of the stack, or all of the model but `moe`, whose tokens no capacity bounds.
  [[nodiscard]] std::vector<std::string> recorded_modules() const {
    std::vector<GraphModule> modules = software_.cuda_graph_modules;
    const auto has = [&](auto rule) { return any_layer(model_, rule); };
    if (modules.empty()) {
      if (has([](const Architecture& layer) { return has_attention(layer); }))
        modules.push_back(GraphModule::attn);
      if (any_mixer(model_, &Mixers::mamba)) modules.push_back(GraphModule::mamba);
      if (has([](const Architecture& layer) { return has_dense_mlp(layer); }))
        modules.push_back(GraphModule::mlp);
      if (any_experts(model_)) {
        modules.push_back(GraphModule::moe_router);
        // Padding while routing waits for counts of tokens [core/transformer/transformer_config.py:2845].
        if (!strategy_.moe_router_padding) modules.push_back(GraphModule::moe_preprocess);
      }
    }
    std::vector<std::string> names;
    names.reserve(modules.size());
    for (const GraphModule module : modules) names.emplace_back(name_of(module));
    return names;
  }

  void add_adapters() {
    const Lora& lora = strategy_.lora;
    if (lora.rank == 0 || !bridge_) return;
    add("peft", "dim", lora.rank);
    if (!lora.targets.empty()) add("peft", "target_modules", words_.listed(lora.targets));
    if (lora.dropout.value > 0) add("peft", "dropout", fmt::format("{:g}", lora.dropout.value));
  }

  const Transformer& model_;
  const Strategy& strategy_;
  const Workload& workload_;
  const Software& software_;
  bool bridge_;
  bool zero_bubble_;  // a fork of 2024, which is told no more than its own flags
  MegatronWords words_;
};

}  // namespace

LaunchFlags megatron_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Software& software) {
  EXPECTS(software.launcher.has_value());
  return MegatronFlags(model, strategy, workload, software).run();
}

}  // namespace headroom
