// Strategy of a training run (parallel sizes, microbatch, recomputation, schedule) and its workload (the
// batch).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/hardware/data_sharding.hpp"
#include "headroom/hardware/optimizer.hpp"
#include "headroom/hardware/recompute_policy.hpp"
#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/model/exchange.hpp"
#include "headroom/model/lora.hpp"
#include "headroom/model/moe_imbalance.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/parallel/axes.hpp"
#include "headroom/parallel/offload.hpp"

namespace headroom {

// Largest number of microbatches that a pipeline accepts. A replay of its schedule takes well under a second.
inline constexpr std::int64_t most_microbatches = 1'000'000;

// Method that selects the layers to recompute if K is given [Megatron-LM, --recompute-method]. block: the
// first K layers of every virtual stage recompute as the policy says; with `full`, each is a checkpoint. The
// other layers save everything. uniform (`full` only): every K consecutive layers share one checkpoint.
enum class RecomputeMethod : std::uint8_t { block, uniform };

struct Recomputation {
  RecomputePolicy policy = RecomputePolicy::none;
  RecomputeMethod method = RecomputeMethod::block;
  std::int64_t layers = 0;                    // K; 0: all layers, a checkpoint each
  bool distribute_saved_activations = false;  // 2sbh/t a layer for one more all-gather [K22 section 5]
  bool window = false;  // exempt as many in-flight microbatches as memory allows [K22 appendix C]
  // Names of ops or modules (recompute_modules.hpp). "activation" and "moe_act" are those of all kinds of
  // layers, "wide.activation" is that of one kind.
  std::vector<std::string> ops;
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

struct Strategy {
  std::int64_t tensor_parallel = 1;         // t
  std::int64_t pipeline_parallel = 1;       // p
  std::int64_t virtual_pipeline = 1;        // m, virtual stages per PP rank
  std::int64_t context_parallel = 1;        // c, ranks that split every sequence
  std::int64_t data_parallel = 1;           // d
  std::int64_t expert_parallel = 1;         // y, ranks of t c d that share a layer's experts
  std::int64_t expert_tensor_parallel = 1;  // z, ranks that share an expert
  Dispatcher moe_dispatcher = Dispatcher::alltoall;
  bool moe_router_padding = false;  // pads the tokens of experts while routing, without a copy
  // Pads the tokens of every expert to its capacity factor [Megatron-LM, --moe-pad-expert-input-to-capacity].
  bool moe_pad_to_capacity = false;
  std::int64_t micro_batch = 1;  // b
  bool sequence_parallel = false;
  // Needs sequence_parallel. Splits tensors along the hidden dimension instead of the sequence. Ranks then
  // sum the statistics of norms. For comparison only: no stack has this layout.
  bool split_hidden = false;
  bool save_gathered_input = false;  // saves gathered inputs instead of gathering twice
  Recomputation recompute;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  bool keep_pipeline_outputs = false;  // keeps a stage's output after sending it [K22 appendix B]
  DataSharding data_sharding = DataSharding::none;
  // Ranks that share one copy of what is sharded; the other groups of ranks replicate it [HSDP]. 0: all
  // ranks.
  std::int64_t shard_size = 0;
  bool no_reshard_after_forward = false;  // keeps gathered weights until the backward pass
  // Reduces sharded gradients in every microbatch, even if the stack would sum them first and reduce once
  // [accelerate, GradientAccumulationPlugin.sync_each_batch].
  bool sync_each_batch = false;
  Precision precision = Precision::bf16;  // dtype and recipe of linears in layers
  PrecisionScope precision_scope;         // parts of the model beside these linears
  bool fp8_param_gather = false;          // keeps and gathers weights of these linears in that dtype only
  bool tp_only_amax_red = false;          // delayed scaling: reduces amax over the TP x CP ranks only
  Dtype gradient_dtype = Dtype::fp32;     // half: 16 bytes per parameter in total; fp32: 18
  Optimizer optimizer;
  // The backward pass steps each weight as soon as it has its gradient, and frees the gradient [torchtune,
  // training/memory.py, register_optim_in_bwd_hooks; torchtitan, components/optimizer.py,
  // OptimizersInBackwardContainer].
  bool step_in_backward = false;
  Offload offload;  // parts of a rank's state on the host
  Lora lora;        // adapters to train instead of the weights
  CpComm cp_comm = CpComm::p2p;
  std::vector<std::int64_t> hierarchical_cp_sizes;  // a2a_p2p: U, c/U; empty: as heads allow
  // Layers of each virtual stage, in the order of the model. Empty: as even as possible.
  std::vector<std::int64_t> stage_layers;
  // Overlaps forward passes with backward passes of another microbatch, so that each hides the other's expert
  // all-to-alls. A rank runs one more forward pass ahead [Megatron-Core,
  // core/pipeline_parallel/combined_1f1b.py].
  bool overlap_expert_all_to_all = false;
  // Interleaved schedule: microbatches that go through a virtual stage in a row. 0: p.
  std::int64_t microbatch_group_size = 0;
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// Returns whether passes with this recomputation can overlap: it must not repeat the all-to-alls of experts.
inline bool goes_beside(const Recomputation& recompute) {
  const auto exchanges = [](std::string_view name) {
    name.remove_prefix(name.rfind('.') + 1);  // drops the kind of layers: "wide.moe"
    return name == "moe" || name == "dispatch" || name == "combine";
  };
  return recompute.policy != RecomputePolicy::full && !recompute.window &&
         std::none_of(recompute.ops.begin(), recompute.ops.end(), exchanges);
}

struct Workload {
  std::int64_t global_batch = 1;  // B
  std::int64_t sequence = 0;      // s
  MoeImbalance moe_imbalance;     // I, load of the busiest expert rank, as a multiple of the mean
  bool reference_model = false;   // a frozen copy of the model scores every sequence too (DPO, KTO)
  friend bool operator==(const Workload&, const Workload&) = default;
};

// A field with the number of ranks of an axis. An axis without a field has one rank.
struct AxisField {
  ParallelAxis axis;
  std::int64_t Strategy::*size;
  std::string_view name;
};
inline constexpr std::array<AxisField, 6> axis_fields{{
    {ParallelAxis::tensor, &Strategy::tensor_parallel, "tensor_parallel"},
    {ParallelAxis::context, &Strategy::context_parallel, "context_parallel"},
    {ParallelAxis::data, &Strategy::data_parallel, "data_parallel"},
    {ParallelAxis::pipeline, &Strategy::pipeline_parallel, "pipeline_parallel"},
    {ParallelAxis::expert, &Strategy::expert_parallel, "expert_parallel"},
    {ParallelAxis::expert_tensor, &Strategy::expert_tensor_parallel, "expert_tensor_parallel"},
}};

// Returns whether each of the ranks that hold the same weights steps its own shard of them.
constexpr bool shards_optimizer(const Strategy& strategy) {
  return strategy.data_sharding != DataSharding::none;
}

constexpr AxisSizes axis_sizes(const Strategy& strategy) {
  AxisSizes sizes;
  for (const AxisField& field : axis_fields) sizes[field.axis] = strategy.*field.size;
  return sizes;
}

constexpr std::int64_t devices(const Strategy& strategy) { return ranks(grid_of(axis_sizes(strategy))); }

// Returns the number of ranks that hold the same dense weights: d c.
constexpr std::int64_t replicas(const Strategy& strategy) {
  return replicas(axis_sizes(strategy), WeightClass::dense);
}

// Returns the GPUs of one replica, which hold a copy of the model and run a part of the batch: t c p.
constexpr std::int64_t devices_of_replica(const Strategy& strategy) {
  return strategy.tensor_parallel * strategy.context_parallel * strategy.pipeline_parallel;
}

// Returns the microbatches of each data-parallel rank: n = B/(b d). Expects a legal strategy.
constexpr std::int64_t microbatches(const Strategy& strategy, const Workload& workload) {
  return workload.global_batch / (strategy.micro_batch * strategy.data_parallel);
}

// Returns whether an interleaved schedule can send its microbatches through the virtual stages in groups of
// `size`. Groups hold p microbatches (default, if p divides n) or more. The last group takes the rest, which
// must also be at least p, or its passes would wait for each other [Megatron-Core,
// core/pipeline_parallel/schedules.py, microbatch_group_size_per_vp_stage].
constexpr bool is_group_size(std::int64_t size, std::int64_t ranks, std::int64_t microbatches) {
  return ranks <= size && size <= microbatches && (microbatches % size == 0 || microbatches % size >= ranks);
}

// Returns the smallest legal group, which keeps the fewest passes in flight. Returns 0 if there are fewer
// microbatches than ranks.
constexpr std::int64_t least_group_size(std::int64_t ranks, std::int64_t microbatches) {
  for (std::int64_t size = ranks; size <= microbatches; ++size) {
    if (is_group_size(size, ranks, microbatches)) return size;
  }
  return 0;
}

constexpr std::int64_t group_size(const Strategy& strategy) {
  return strategy.microbatch_group_size > 0 ? strategy.microbatch_group_size : strategy.pipeline_parallel;
}

// Returns whether routing pads the tokens of FP8 or FP4 experts, so that no copy has to.
inline bool routes_padded(const Strategy& strategy) {
  return strategy.moe_router_padding || sends_padded(strategy.moe_dispatcher);
}

// Returns whether both strategies have the same kinds of layers in the same order, whatever their precision.
constexpr bool same_layer_kinds(const Strategy& x, const Strategy& y) {
  const auto ends = [](const Strategy& of) {
    const PrecisionScope& scope = of.precision_scope;
    return is_narrow(of.precision) ? std::array{scope.bf16_layers_at_start, scope.bf16_layers_at_end}
                                   : std::array<std::int64_t, 2>{};
  };
  return ends(x) == ends(y);
}

// Returns how many of the `layers` of a virtual stage the backward pass recomputes: all, or with the block
// method the first K.
std::int64_t recomputed_layers(std::int64_t layers, const Recomputation& recompute);
// Returns whether every stage recomputes all its layers.
constexpr bool recomputes_all_layers(const Recomputation& recompute) {
  return recompute.layers == 0 || recompute.method != RecomputeMethod::block;
}

// Returns which layers save other tensors than the rest: those that are recomputed, or the first layers,
// whose saved tensors wait on the host.
Recomputation set_apart(const Recomputation& recompute, const Offload& offload);

// Returns the layers of each of the p m virtual stages, in the order of the model. If p m does not divide L
// and no list is given, each stage from the last but one backwards gets one more layer. Early ranks hold the
// most microbatches, and the last stage holds the output layer.
std::vector<std::int64_t> layers_by_stage(std::int64_t layers, const Strategy& strategy);

template <>
inline constexpr std::array<Spelling<RecomputeMethod>, 2> spellings<RecomputeMethod>{{
    {RecomputeMethod::block, "block"},
    {RecomputeMethod::uniform, "uniform"},
}};

}  // namespace headroom
