#include "interop/megatron_flags.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "interop/launcher_flags.hpp"

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
        zero_bubble_(*software.launcher == Launcher::zero_bubble) {
    result_.launcher = *software.launcher;
  }

  LaunchFlags run() {
    add_sizes();
    add_schedule();
    add_experts();
    add_sharding();
    add_overlaps();
    add_recomputation();
    add_precision();
    add_optimizer();
    add_offload();
    if (strategy_.lora.rank > 0)
      lacks(bridge_ ? "LoRA: Megatron-Bridge's peft=LoRA(dim, target_modules), in Python"
                    : "LoRA: Megatron-LM has no adapters, Megatron-Bridge has");
    return std::move(result_);
  }

 private:
  void add(std::string_view section, std::string_view name, std::string_view value) {
    std::string flag;
    if (bridge_) {
      flag.append(section).append(".").append(name).append("=").append(value);
    } else {
      flag.append("--").append(name);
      std::replace(flag.begin(), flag.end(), '_', '-');
      flag.append(value.empty() ? "" : " ").append(value);
    }
    result_.flags.push_back(std::move(flag));
  }
  void add(std::string_view section, std::string_view name, std::int64_t value) {
    add(section, name, std::to_string(value));
  }
  void on(std::string_view section, std::string_view name) { add(section, name, bridge_ ? "true" : ""); }
  void lacks(std::string what) { result_.lacks.push_back(std::move(what)); }

  // Values that a flag has behind it one after the other, and an override as a list.
  [[nodiscard]] std::string listed(const std::vector<std::string>& values) const {
    return bridge_ ? "[" + joined(values, ",") + "]" : joined(values, " ");
  }

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
      if (!strategy_.hierarchical_cp_sizes.empty()) {
        std::vector<std::string> sizes;
        for (const std::int64_t size : strategy_.hierarchical_cp_sizes) sizes.push_back(std::to_string(size));
        add("model", "hierarchical_context_parallel_sizes", listed(sizes));
      }
    }
    add("train", "micro_batch_size", strategy_.micro_batch);
    add("train", "global_batch_size", workload_.global_batch);
    add("dataset", "seq_length", workload_.sequence);
    if (bridge_) add("model", "seq_length", workload_.sequence);
  }

  void add_schedule() {
    const ScheduleKind schedule = strategy_.schedule;
    const std::int64_t p = strategy_.pipeline_parallel;
    const bool usual =
        schedule == ScheduleKind::one_forward_one_backward || schedule == ScheduleKind::interleaved;
    if (p == 1) return;
    if (strategy_.keep_pipeline_outputs) {
      if (bridge_) add("model", "deallocate_pipeline_outputs", "false");
      if (!bridge_) lacks("--keep-pipeline-outputs: Megatron-LM frees them");
    }
    add_stages();
    if (usual) return;
    if (!zero_bubble_ || schedule < ScheduleKind::zero_bubble_h1 || schedule > ScheduleKind::v_min) {
      lacks("--schedule " + std::string(name_of(schedule)) + ": " + std::string(name_of(result_.launcher)) +
            " runs 1F1B, or interleaved 1F1B where ranks have virtual stages");
      return;
    }
    on("model", "enable_zero_bubble");
    switch (schedule) {
      case ScheduleKind::zero_bubble_h1: add("model", "zero_bubble_max_pending_backward", p); break;
      case ScheduleKind::zero_bubble_h2: add("model", "zero_bubble_max_pending_backward", 2 * p - 1); break;
      case ScheduleKind::zero_bubble_2p: add("model", "zero_bubble_max_pending_backward", 2 * p); break;
      default: on("model", "zero_bubble_v_schedule"); break;
    }
    if (repeats_block(schedule))
      add("model", "zero_bubble_v_schedule_mem_setup", schedule == ScheduleKind::v_half ? "half" : "min");
    if (!repeats_block(schedule) && software_.post_validation)
      on("model", "enable_optimizer_post_validation");
  }

  void add_stages() {
    const std::int64_t m = strategy_.virtual_pipeline;
    const std::vector<std::int64_t> by_stage = layers_by_stage(model_.layers, strategy_);
    const bool uneven = stage_layout(model_.layers, strategy_) == StageLayout::uneven;
    if (uneven && software_.uneven_stages) {
      if (const auto pattern = hybrid_pattern(model_, by_stage)) {
        add("model", "hybrid_layer_pattern", "'" + *pattern + "'");
      } else {
        add("model", "pipeline_model_parallel_layout",
            "'" + megatron_layout(by_stage, model_.mtp_layers) + "'");
      }
    } else if (!uneven && m > 1 && goes_round(strategy_.schedule)) {
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
    if (!zero_bubble_) {
      add("model", "expert_tensor_parallel_size", strategy_.expert_tensor_parallel);
    } else if (strategy_.expert_tensor_parallel != strategy_.tensor_parallel) {
      lacks("--expert-tensor-parallel " + std::to_string(strategy_.expert_tensor_parallel) +
            ": this fork divides experts as it does other layers");
    }
    const std::string dispatcher(name_of(strategy_.moe_dispatcher));
    const bool flex = sends_once_to_each_rank(strategy_.moe_dispatcher);
    if (flex && zero_bubble_) return lacks("--moe-dispatcher " + dispatcher + ": it has allgather, alltoall");
    add("model", "moe_token_dispatcher_type", flex ? "flex" : dispatcher);
    if (flex) add("model", "moe_flex_dispatcher_backend", dispatcher);
    if (strategy_.overlap_expert_all_to_all)
      on(bridge_ ? "comm_overlap" : "model", "overlap_moe_expert_parallel_comm");
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
    if (strategy_.no_reshard_after_forward)
      lacks("--no-reshard-after-forward: Megatron-FSDP gathers weights again in the backward pass");
  }

  void add_overlaps() {
    const char* const section = bridge_ ? "comm_overlap" : "ddp";
    if (replicas(strategy_) > 1 && software_.overlap_grad_reduce) on(section, "overlap_grad_reduce");
    if (shards_optimizer(strategy_) && software_.overlap_param_gather) on(section, "overlap_param_gather");
    // Megatron-Core refuses it without sequence parallelism [core/transformer/transformer_config.py].
    if (strategy_.tensor_parallel > 1 && strategy_.sequence_parallel &&
        software_.overlap_tensor_parallel == TensorOverlap::full)
      on(section, "tp_comm_overlap");
    if (goes_round(strategy_.schedule) && !software_.overlap_p2p && result_.launcher == Launcher::megatron_lm)
      on(section, "no_overlap_p2p_communication");
  }

  void add_recomputation() {
    const Recomputation& recompute = strategy_.recompute;
    switch (recompute.policy) {
      case RecomputePolicy::none: return;
      case RecomputePolicy::selective: add("model", "recompute_granularity", "selective"); break;
      case RecomputePolicy::selective_op: lacks("--recompute selective_op: it is torchtitan's"); return;
      case RecomputePolicy::full:
        add("model", "recompute_granularity", "full");
        add("model", "recompute_method", recompute.layers == 0 ? "uniform" : name_of(recompute.method));
        add("model", "recompute_num_layers", std::max<std::int64_t>(recompute.layers, 1));
        if (recompute.distribute_saved_activations) on("model", "distribute_saved_activations");
        break;
      case RecomputePolicy::ops: {
        std::vector<std::string> others = recompute.ops;
        std::erase_if(others, [](const std::string& op) { return find_module(op) != nullptr; });
        if (!others.empty() || recompute.layers > 0 || zero_bubble_) {
          lacks("--recompute-ops " + joined(recompute.ops, ",") +
                (recompute.layers > 0 ? " of some layers" : "") +
                (zero_bubble_ ? ": this fork recomputes core attention or layers"
                              : ": Megatron-Core recomputes its modules, of all layers"));
          return;
        }
        add("model", "recompute_granularity", "selective");
        add("model", "recompute_modules", listed(recompute.ops));
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
    if (strategy_.fp8_param_gather && !shards_optimizer(strategy_) && strategy_.data_parallel > 1)
      lacks("--fp8-param-gather without zero1: Megatron-Core asks for its distributed optimizer");
    const char* const gather = precision == Precision::nvfp4 ? "fp4_param_gather" : "fp8_param_gather";
    if (strategy_.fp8_param_gather) on(bridge_ ? "mixed_precision" : "model", gather);
    const PrecisionScope& scope = strategy_.precision_scope;
    if (scope.bf16_layers_at_start > 0 || scope.bf16_layers_at_end > 0) {
      const char* const section = bridge_ ? "mixed_precision" : "model";
      on(section, "first_last_layers_bf16");
      add(section, "num_layers_at_start_in_bf16", scope.bf16_layers_at_start);
      add(section, "num_layers_at_end_in_bf16", scope.bf16_layers_at_end);
    }
    if (scope.attention) on(bridge_ ? "mixed_precision" : "model", "fp8_dot_product_attention");
    if (scope.output_layer) on("model", "fp8_output_proj");
    add_half_modules(scope.bf16_modules);
    if (strategy_.tp_only_amax_red) on("model", "tp_only_amax_red");
  }

  void add_half_modules(const PrecisionModules& modules) {
    if (modules.contains(PrecisionModule::mtp)) on("model", "keep_mtp_spec_in_bf16");
    std::vector<std::string_view> patterns = names_of(modules);
    std::erase(patterns, name_of(PrecisionModule::mtp));
    if (patterns.empty()) return;
    std::string what = "--bf16-modules ";
    for (const std::string_view name : patterns)
      what.append(name == patterns.front() ? "" : ",").append(name);
    lacks(what + ": a --te-precision-config-file whose patterns give these modules an empty training_recipe");
  }

  void add_optimizer() {
    const Optimizer& optimizer = strategy_.optimizer;
    const bool has_kind = optimizer.kind == OptimizerKind::adam || optimizer.kind == OptimizerKind::sgd ||
                          (optimizer.kind == OptimizerKind::muon && !zero_bubble_);
    if (has_kind) add("optimizer", "optimizer", name_of(optimizer.kind));
    if (!has_kind)
      lacks("--optimizer " + std::string(name_of(optimizer.kind)) +
            (zero_bubble_ ? ": this fork steps adam or sgd" : ": Megatron-Core steps adam, sgd or muon"));
    if (strategy_.gradient_dtype == Dtype::fp16)
      lacks("--gradient-dtype fp16: Megatron-Core sums BF16 gradients in fp32 or bf16");
    if (sums_in_bf16(strategy_)) {
      if (bridge_) {
        add("mixed_precision", "grad_reduce_in_fp32", "false");
      } else {
        on("ddp", "grad_reduce_in_bf16");
      }
    }
    const bool narrow = optimizer.exp_avg == MomentDtype::int8 || optimizer.exp_avg_sq == MomentDtype::int8;
    if (narrow) lacks("moments of int8: Megatron-Core's are fp32, bf16, fp16 or fp8");
    if (optimizer.main_params == MainParams::none)
      lacks("--main-params-dtype none: Megatron-Core keeps a copy");
    if (keeps_fp32(optimizer) || narrow || optimizer.main_params == MainParams::none) return;
    if (!shards_optimizer(strategy_)) {
      lacks("moments or main parameters of 16 bits: Megatron-Core has them with --data-sharding zero1 alone");
      return;
    }
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
    if (offload.parameters) lacks("--offload-parameters: Megatron-LM keeps weights on the devices");
    std::vector<std::string> modules = offload.modules;
    if (std::erase(modules, layer_input) > 0)
      lacks("--offload-modules layer_input: no flag of Megatron-LM sends checkpoints to the host");
    if (!modules.empty()) {
      on("model", "fine_grained_activation_offloading");
      add("model", "offload_modules", listed(modules));
    }
    if (offload.layers > 0) {
      if (bridge_) on("model", "cpu_offloading");
      add("model", "cpu_offloading_num_layers", offload.layers);
    }
  }

  const Transformer& model_;
  const Strategy& strategy_;
  const Workload& workload_;
  const Software& software_;
  bool bridge_;
  bool zero_bubble_;  // a fork of 2024, which is told no more than its own flags
  LaunchFlags result_;
};

}  // namespace

LaunchFlags megatron_flags(const Transformer& model, const Strategy& strategy, const Workload& workload,
                           const Software& software) {
  EXPECTS(software.launcher.has_value());
  return MegatronFlags(model, strategy, workload, software).run();
}

}  // namespace headroom
