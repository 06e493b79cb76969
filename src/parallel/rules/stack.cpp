// Rules of training stacks and of their launchers' flags, and of systems.
#include <algorithm>
#include <array>
#include <optional>

#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "parallel/rules/rows.hpp"

namespace headroom::rules {
namespace {

// Returns whether the stack lists what it has. If not, it runs everything.
bool lists_layouts(const Software& software) { return !software.schedules.empty() || !software.axes.empty(); }

constexpr std::string_view of_lists = "The stack's file (presets/software), each list with its source";

// Visits each axis that the stack does not have.
void each_lacking_axis(const RuleCase& it, VisitCase visit) {
  if (it.software.axes.empty()) return;
  RuleCase of = it;
  for (const AxisField& axis : axis_fields) {
    if (contains(it.software.axes, axis.axis)) continue;
    of.field = axis.name;
    of.name = name_of(axis.axis);
    of.size = it.strategy.*axis.size;
    visit(of);
  }
}

constexpr std::array axis_rows{Rule{"", [](const RuleCase& it) { return it.size == 1; },
                                    "must be 1: the stack {} has no {} parallelism", of_lists,
                                    [](const RuleCase& it) { return shown(it.software.name, it.name); }}};

bool has(const auto& list, auto value) { return list.empty() || contains(list, value); }

std::vector<std::string> choices_shown(const RuleCase& it, const auto& had, auto value) {
  return shown(joined(had, " or "), it.software.name, value);
}

constexpr std::string_view one_of = "must be {} on the stack {}, not {}";

void each_divided_context(const RuleCase& it, VisitCase visit) {
  if (it.strategy.context_parallel > 1) each_layer(it, visit);
}

constexpr std::array context_rows{
    Rule{"context_parallel",
         [](const RuleCase& it) { return admits_any(it.layer->architecture, it.software.cp_comm); },
         "must be 1 for {}{}: the stack {} has `cp_comm` {} alone", of_lists,
         [](const RuleCase& it) {
           const Architecture& layer = it.layer->architecture;
           return shown(layer.attention_sinks ? "the attention sinks"
                        : layer.window > 0    ? "the sliding windows"
                                              : "the chunked attention",
                        of_kind(it), it.software.name, joined(it.software.cp_comm, " and "));
         }}};

bool has_one_capacity(const Transformer& model) {
  std::optional<std::optional<double>> first;
  return !any_layer(model, [&](const Architecture& layer) {
    if (!layer.experts) return false;
    if (!first) first = layer.experts->capacity_factor;
    return *first != layer.experts->capacity_factor;
  });
}

constexpr std::array choice_rows{
    Rule{"schedule",
         [](const RuleCase& it) {
           return it.strategy.pipeline_parallel <= 1 || has(it.software.schedules, it.strategy.schedule);
         },
         one_of, of_lists,
         [](const RuleCase& it) { return choices_shown(it, it.software.schedules, it.strategy.schedule); }},
    Rule{"cp_comm",
         [](const RuleCase& it) {
           return it.strategy.context_parallel <= 1 || has(it.software.cp_comm, it.strategy.cp_comm);
         },
         one_of, of_lists,
         [](const RuleCase& it) { return choices_shown(it, it.software.cp_comm, it.strategy.cp_comm); }},
    Rule{"moe_dispatcher",
         [](const RuleCase& it) {
           const Strategy& strategy = it.strategy;
           const bool sends = strategy.expert_parallel > 1 || strategy.expert_tensor_parallel > 1;
           return !sends || has(it.software.moe_dispatchers, strategy.moe_dispatcher);
         },
         one_of, of_lists,
         [](const RuleCase& it) {
           return choices_shown(it, it.software.moe_dispatchers, it.strategy.moe_dispatcher);
         }},
    Rule{
        "moe_pad_to_capacity",
        [](const RuleCase& it) { return !routes_by_masks(it.software) || has_one_capacity(it.model); },
        "needs one `capacity_factor` for all layers with experts of the model, or none: the stack {} has one "
        "setting",
        "MaxText, configs/base.yml, capacity_factor",
        [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"precision", [](const RuleCase& it) { return has(it.software.precisions, it.strategy.precision); },
         one_of, of_lists,
         [](const RuleCase& it) { return choices_shown(it, it.software.precisions, it.strategy.precision); }},
    Rule{"cuda_graphs",
         [](const RuleCase& it) {
           const CudaGraphs graphs = it.software.cuda_graphs;
           return graphs == CudaGraphs::none || has(it.software.cuda_graph_kinds, graphs);
         },
         one_of, of_lists,
         [](const RuleCase& it) {
           return choices_shown(it, it.software.cuda_graph_kinds, it.software.cuda_graphs);
         }},
    Rule{"sequence_parallel",
         [](const RuleCase& it) { return it.software.sequence_parallel || !it.strategy.sequence_parallel; },
         "must be off: the stack {} has no sequence parallelism", of_lists,
         [](const RuleCase& it) { return shown(it.software.name); }}};

bool has_mode(const RuleCase& it) { return contains(it.software.sharding.modes, it.strategy.data_sharding); }

constexpr std::array stack_sharding_rows{
    Rule{"data_sharding",
         [](const RuleCase& it) {
           const bool alone = replicas(it.strategy) == 1 && it.strategy.data_sharding == DataSharding::none;
           return alone || has_mode(it);
         },
         one_of, of_lists,
         [](const RuleCase& it) {
           return choices_shown(it, it.software.sharding.modes, it.strategy.data_sharding);
         }},
    Rule{"data_sharding",
         [](const RuleCase& it) {
           return it.software.sharding.with_pipeline || it.strategy.pipeline_parallel == 1 ||
                  !shards_gradients(it.strategy) || !has_mode(it) ||
                  !has(it.software.axes, ParallelAxis::pipeline);
         },
         "{} cannot be combined with `pipeline_parallel` on the stack {}", of_lists,
         [](const RuleCase& it) { return shown(it.strategy.data_sharding, it.software.name); }},
    Rule{"data_sharding",
         [](const RuleCase& it) {
           return shards_optimizer(it.strategy) || !needs_sharded_optimizer(it.software, it.strategy);
         },
         "must be zero1 or more with moments or main parameters below 32 bits on the stack {}: Megatron-Core "
         "keeps "
         "them in its distributed optimizer only",
         "Megatron-LM, core/optimizer/__init__.py, use_precision_aware_optimizer",
         [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"base_dtype",
         [](const RuleCase& it) {
           return !is_quantized(it.strategy.lora.base) || !it.software.sharding.flat_parameters ||
                  !shards_weights(it.strategy);
         },
         "must be bf16 with `data_sharding` zero3 on the stack {}: FSDP1 flattens all weights of a layer "
         "into one tensor of one dtype",
         "PyTorch, torch/distributed/fsdp/_flat_param.py, _validate_tensors_to_flatten",
         [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"base_dtype",
         [](const RuleCase& it) {
           return it.strategy.lora.base != BaseDtype::int8 || !shards_weights(it.strategy);
         },
         "must not be int8 with `data_sharding` zero3: bitsandbytes' 8-bit weights are not sharded",
         "Hugging Face transformers, docs/source/en/quantization/bitsandbytes.md; bitsandbytes, docs, "
         "FSDP-QLoRA"},
    Rule{"sync_each_batch",
         [](const RuleCase& it) {
           return !it.strategy.sync_each_batch || it.software.sharding.sync_each_batch;
         },
         "must be off on the stack {}, which {}", of_lists,
         [](const RuleCase& it) {
           return shown(it.software.name, it.software.sharding.sums_before_reduction
                                              ? "has no switch for it"
                                              : "already reduces sharded gradients in every microbatch");
         }}};

constexpr std::array stack_state_rows{
    Rule{"step_in_backward",
         [](const RuleCase& it) {
           return !it.strategy.step_in_backward || it.software.memory.steps_in_backward;
         },
         "must be off: {} has no optimizer that steps in the backward pass (`memory.steps_in_backward`)",
         of_lists, [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"main_params_dtype",
         [](const RuleCase& it) {
           const MainParams main_params = it.strategy.optimizer.main_params;
           return it.software.sharding.weights == ShardedWeights::copies || main_params == MainParams::fp32 ||
                  main_params == MainParams::none;
         },
         "must be fp32 or none on the stack {}: its optimizer updates the FP32 or 16-bit weights directly",
         of_lists, [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"main_params_dtype",
         [](const RuleCase& it) {
           Optimizer optimizer = it.strategy.optimizer;
           // The stack's own, as the remainders of NeMo's distributed_fused_adam, need no switch.
           const bool own = optimizer.main_params == it.software.optimizer.main_params;
           if (own || optimizer.main_params == MainParams::none) optimizer.main_params = MainParams::fp32;
           return it.software.optimizer_dtypes || keeps_fp32(optimizer);
         },
         "and the moments of the optimizer must be fp32 on the stack {}, which has no precision-aware "
         "optimizer",
         of_lists, [](const RuleCase& it) { return shown(it.software.name); }}};

// Returns the field of an offload that the stack does not have, or nothing.
std::string_view offload_lacking(const Software& software, const Offload& offload) {
  const auto lacks = [&](Offloads kind) {
    const bool lists = software.released || !software.offloads.empty();
    return lists && !contains(software.offloads, kind);
  };
  const bool checkpoints = contains(offload.modules, layer_input);
  const bool activations = offload.modules.size() > (checkpoints ? 1U : 0U);
  if (offload.layers > 0 && lacks(Offloads::activations)) return "offload_layers";
  if ((checkpoints && lacks(Offloads::checkpoints)) || (activations && lacks(Offloads::activations)))
    return "offload_modules";
  if (offload.parameters) return lacks(Offloads::parameters) ? "offload_parameters" : "";
  return offload.optimizer.value > 0 && lacks(Offloads::optimizer) ? "optimizer_offload_fraction" : "";
}

void once_with_offload(const RuleCase& it, VisitCase visit) {
  if (!offloads(it.strategy.offload)) return;
  RuleCase of = it;
  of.field = offload_lacking(it.software, it.strategy.offload);
  visit(of);
}

constexpr std::array stack_offload_rows{
    Rule{"", [](const RuleCase& it) { return it.field.empty(); },
         "is not available on the stack {}, which offloads {}{}", of_lists,
         [](const RuleCase& it) {
           const std::vector<Offloads>& had = it.software.offloads;
           const bool together = contains(had, Offloads::parameters) && !contains(had, Offloads::optimizer);
           return shown(it.software.name, had.empty() ? "nothing" : joined(had, " and "),
                        together ? " (the optimizer only together with parameters)" : "");
         }}};

bool recomputes_shared_experts(const Recomputation& recompute) {
  return std::any_of(recompute.ops.begin(), recompute.ops.end(), [](std::string_view name) {
    name.remove_prefix(name.rfind('.') + 1);  // of one kind of layers
    return name.starts_with("shared");
  });
}

void once_recomputed(const RuleCase& it, VisitCase visit) {
  const Recomputation& recompute = it.strategy.recompute;
  if (recompute.policy != RecomputePolicy::none || recompute.layers != 0 || !recompute.ops.empty()) visit(it);
}

// Returns whether the stack's list of recomputation has the strategy's.
bool lists_policy(const RuleCase& it) {
  const RecomputePolicy policy = it.strategy.recompute.policy;
  return policy == RecomputePolicy::none || contains(it.software.recompute, policy);
}

constexpr std::string_view only_listed = "{}: the stack {} supports only `recompute` {}";
std::vector<std::string> policy_shown(const RuleCase& it) {
  const RecomputePolicy policy = it.strategy.recompute.policy;
  return shown(policy == RecomputePolicy::ops ? "recomputation of ops or modules"
                                              : std::string(name_of(policy)) + " recomputation",
               it.software.name, joined(it.software.recompute, " or "));
}

constexpr std::string_view of_shared = "Megatron-Core, transformer_config.py, moe_shared_expert_overlap";
constexpr std::array stack_recompute_rows{
    Rule{"recompute",
         [](const RuleCase& it) {
           const RecomputePolicy policy = it.strategy.recompute.policy;
           return policy != RecomputePolicy::selective_op || contains(it.software.recompute, policy);
         },
         "must not be selective_op on the stack {}: only torchtitan has it",
         "torchtitan, distributed/activation_checkpoint.py",
         [](const RuleCase& it) { return shown(it.software.name); }},
    Rule{"recompute",
         [](const RuleCase& it) {
           const bool by_op = it.strategy.recompute.policy == RecomputePolicy::selective_op;
           return !it.software.released || by_op || lists_policy(it);
         },
         only_listed, of_lists, policy_shown},
    Rule{"recompute_ops",
         [](const RuleCase& it) {
           return !it.software.overlap_shared_experts || !recomputes_shared_experts(it.strategy.recompute);
         },
         "must leave out shared_experts, which overlap the all-to-all (`overlap_shared_experts` of the stack "
         "{})",
         of_shared, [](const RuleCase& it) { return shown(it.software.name); }}};

void once_beside_on_stack(const RuleCase& it, VisitCase visit) {
  if (it.strategy.overlap_expert_all_to_all) visit(it);
}

constexpr std::array stack_overlap_rows{
    Rule{"overlap_expert_all_to_all", [](const RuleCase& it) { return !it.software.overlap_shared_experts; },
         "is not available when shared experts overlap the all-to-all (`overlap_shared_experts` of the stack "
         "{})",
         of_shared, [](const RuleCase& it) { return shown(it.software.name); }},
    // Stacks that list neither schedules nor axes run whatever others are compared with.
    Rule{"overlap_expert_all_to_all",
         [](const RuleCase& it) {
           return it.software.overlap_expert_all_to_all || !lists_layouts(it.software);
         },
         "must be off on the stack {}, which runs one pass after another", of_lists,
         [](const RuleCase& it) { return shown(it.software.name); }}};

bool gathers_in_pieces(const Software& software) {
  return software.overlap_tensor_parallel == TensorOverlap::full;
}

constexpr std::array stack_hidden_rows{Rule{
    "split_hidden",
    [](const RuleCase& it) {
      return !it.strategy.split_hidden || (!lists_layouts(it.software) && !gathers_in_pieces(it.software));
    },
    "must be off on the stack {}{}", "A layout to compare with: no stack has it",
    [](const RuleCase& it) {
      return shown(it.software.name, gathers_in_pieces(it.software) ? ", which gathers the sequence in chunks"
                                                                    : ": no stack has it");
    }}};

constexpr std::string_view of_flags = "The stack's file (presets/software): what its launcher has flags for";

bool is_uniform(const RuleCase& it) { return it.strategy.recompute.method == RecomputeMethod::uniform; }

// A stack without a list runs everything.
constexpr std::array launcher_recompute_rows{
    Rule{"recompute", [](const RuleCase& it) { return it.software.released.has_value() || lists_policy(it); },
         only_listed, of_flags, policy_shown, [](Strategy& strategy) { strategy.recompute = {}; }},
    Rule{"recompute_layers",
         [](const RuleCase& it) { return it.strategy.recompute.layers == 0 || it.software.recompute_layers; },
         "{} {} {}{}: the stack {} {}", of_flags,
         [](const RuleCase& it) {
           const std::int64_t layers = it.strategy.recompute.layers;
           const bool uniform = is_uniform(it);
           return shown(uniform ? "checkpoints of" : "recomputation of", layers,
                        layers == 1 ? "layer" : "layers", uniform ? " each" : " of each stage",
                        it.software.name, uniform ? "checkpoints each layer" : "recomputes all layers");
         },
         [](Strategy& strategy) {
           strategy.recompute.layers = 0;
           strategy.recompute.method = RecomputeMethod::block;
         }}};

constexpr std::array launcher_layout_rows{
    Rule{"stage_layers",
         [](const RuleCase& it) {
           return it.software.uneven_stages ||
                  stage_layout(it.model.layers, it.strategy) == StageLayout::even;
         },
         "uneven stages: the stack {} gives each stage the same number of layers", of_flags,
         [](const RuleCase& it) { return shown(it.software.name); },
         [](Strategy& strategy) { strategy.stage_layers.clear(); }},
    Rule{"microbatch_group_size",
         [](const RuleCase& it) {
           return it.software.microbatch_groups || group_size(it.strategy) == it.strategy.pipeline_parallel;
         },
         "groups of {} microbatches: the stack {} supports only one microbatch per pipeline rank in a group "
         "({})",
         of_flags,
         [](const RuleCase& it) {
           return shown(group_size(it.strategy), it.software.name, it.strategy.pipeline_parallel);
         },
         [](Strategy& strategy) { strategy.microbatch_group_size = 0; }}};

void once_on_device(const RuleCase& it, VisitCase visit) {
  if (it.system == nullptr || !it.system->performance || !is_narrow(it.strategy.precision)) return;
  visit(it);
}

const Device& device_of(const RuleCase& it) { return it.system->performance->device; }
const PrecisionRow& row_of(const RuleCase& it) { return headroom::row_of(it.strategy.precision); }

bool has_peak(const RuleCase& it) { return headroom::has_peak(device_of(it), row_of(it).dtype); }
bool has_other_fp4(const RuleCase& it) {
  const Device& device = device_of(it);
  return row_of(it).dtype == Dtype::nvfp4 && !device.fp4_peak && device.mxfp4_peak;
}

std::vector<std::string> device_shown(const RuleCase& it) {
  return shown(it.system->device, it.strategy.precision);
}
constexpr std::array gpu_rows{
    Rule{"precision", [](const RuleCase& it) { return !has_other_fp4(it); },
         "must be one that {} can run: the GPU has no {} GEMMs, as its FP4 is MXFP4",
         "The data sheet of the device", device_shown},
    Rule{"precision", [](const RuleCase& it) { return has_peak(it) || has_other_fp4(it); },
         "must be one that {} can run: the GPU has no {} GEMMs", "The data sheet of the device",
         device_shown},
    Rule{"precision",
         [](const RuleCase& it) {
           return !has_peak(it) || !row_of(it).scales_blocks || scales_blocks(device_of(it));
         },
         "must be one that {} can run: {} needs a GPU that scales blocks of 32 (Blackwell, MI350 and later)",
         "OCP Microscaling Formats (MX) 1.0", device_shown}};

void once_on_host(const RuleCase& it, VisitCase visit) {
  const Offload& offload = it.strategy.offload;
  if (it.system == nullptr || !offloads(offload)) return;
  RuleCase of = it;
  of.field = offload.optimizer.value > 0 ? "optimizer_offload_fraction"
             : offload.parameters        ? "offload_parameters"
                                         : activations_field(offload);
  visit(of);
}

constexpr std::array host_rows{Rule{"", [](const RuleCase& it) { return it.system->host.has_value(); },
                                    "needs the host of the system, which {} does not describe: add its "
                                    "memory, memory_bandwidth, device_link and source",
                                    "What is offloaded lies in the memory of the host",
                                    [](const RuleCase& it) { return shown(it.system->name); }}};

constexpr std::array stack_topics{
    Topic{"axes of the stack", Whose::stack, Reads::layout, each_lacking_axis, axis_rows},
    Topic{"choices of the stack", Whose::stack, Reads::layout, once, choice_rows},
    Topic{"context parallelism of the stack", Whose::stack, Reads::layout, each_divided_context,
          context_rows},
    Topic{"sharding of the stack", Whose::stack, Reads::sharding, once, stack_sharding_rows},
    Topic{"state of the stack", Whose::stack, Reads::layout, once, stack_state_rows},
    Topic{"offload of the stack", Whose::stack, Reads::layout, once_with_offload, stack_offload_rows},
    Topic{"recomputation of the stack", Whose::stack, Reads::recompute, once_recomputed,
          stack_recompute_rows},
    Topic{"overlap of the stack", Whose::stack, Reads::layout, once_beside_on_stack, stack_overlap_rows},
    Topic{"a split hidden size on the stack", Whose::stack, Reads::layout, once, stack_hidden_rows},
    Topic{"arithmetic of the GPUs", Whose::device, Reads::layout, once_on_device, gpu_rows},
    Topic{"the host", Whose::host, Reads::layout, once_on_host, host_rows},
    Topic{"recomputation by flags", Whose::launcher, Reads::recompute, once_recomputed,
          launcher_recompute_rows},
    Topic{"layouts by flags", Whose::launcher, Reads::layout, once, launcher_layout_rows}};

}  // namespace

std::span<const Topic> of_stack() { return stack_topics; }

}  // namespace headroom::rules
