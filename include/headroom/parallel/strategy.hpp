// How a training run is laid out: parallel sizes, microbatch, recomputation, schedule, and the batch it works
// on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/hardware/optimizer.hpp"
#include "headroom/hardware/recompute_policy.hpp"
#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/model/adapters.hpp"
#include "headroom/model/expert_load.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/axes.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/offload.hpp"

namespace headroom {

// That a pipeline may be given: a replay of the schedule visits as many in well under a second.
inline constexpr std::int64_t most_microbatches = 1'000'000;

// With K layers. block: the first K layers of every virtual stage recompute as the policy says (full: are
// checkpointed, one by one; ops), and the rest keep everything. uniform, with `full`: every K consecutive
// layers share one checkpoint [Megatron-LM, --recompute-method].
enum class RecomputeMethod : std::uint8_t { block, uniform };

struct Recomputation {
  RecomputePolicy policy = RecomputePolicy::none;
  RecomputeMethod method = RecomputeMethod::block;
  std::int64_t layers = 0;                    // K; 0: all layers, a checkpoint each
  bool distribute_saved_activations = false;  // K22 section 5: 2sbh/t a layer, at one more all-gather
  bool window = false;  // exempt as many in-flight microbatches as memory allows [K22 appendix C]
  std::vector<std::string>
      ops;  // or modules (recompute_modules.hpp), of all kinds of layers or of one: "activation",
            // "wide.activation", "moe_act"
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

struct Strategy {
  std::int64_t tensor_parallel = 1;         // t
  std::int64_t pipeline_parallel = 1;       // p
  std::int64_t virtual_pipeline = 1;        // m, chunks per pipeline rank
  std::int64_t context_parallel = 1;        // c, ranks that divide every sequence
  std::int64_t data_parallel = 1;           // d
  std::int64_t expert_parallel = 1;         // y, ranks of t c d that share the experts of a layer
  std::int64_t expert_tensor_parallel = 1;  // z, ranks that share an expert
  Dispatcher moe_dispatcher = Dispatcher::alltoall;
  bool moe_router_padding = false;  // rows of experts are padded as they are routed, and not by copying them
  // Every expert gets as many rows as its capacity factor admits, tokens or padding [Megatron-LM,
  // --moe-pad-expert-input-to-capacity].
  bool moe_pad_to_capacity = false;
  std::int64_t micro_batch = 1;  // b
  bool sequence_parallel = false;
  // With sequence_parallel: what it divides along the sequence is divided along the hidden dimension in place
  // of that, and ranks add up the statistics of norms. A layout to compare with: no stack has it.
  bool split_hidden = false;
  bool save_gathered_input = false;  // save gathered inputs whole instead of gathering twice
  Recomputation recompute;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  bool keep_pipeline_outputs = false;  // do not free a stage's output once it is sent [K22 appendix B]
  DataSharding data_sharding = DataSharding::none;
  std::int64_t shard_size =
      0;  // ranks of a class that divide what is sharded; others replicate them. 0: all [HSDP]
  bool no_reshard_after_forward = false;  // weights that were gathered stay until the backward pass
  // Reduces sharded gradients in every microbatch, where the stack would sum them first and reduce once
  // [accelerate, GradientAccumulationPlugin.sync_each_batch].
  bool sync_each_batch = false;
  Precision precision = Precision::bf16;  // of the linears of layers
  PrecisionScope precision_scope;         // and of what else
  bool fp8_param_gather = false;          // their weights are kept, and gathered, in its type alone
  bool tp_only_amax_red = false;  // delayed scaling: largest elements are those of the ranks of t c alone
  Dtype gradient_dtype = Dtype::fp32;  // half: 16 bytes a parameter in all; fp32: 18
  Optimizer optimizer;
  Offload offload;  // what the host keeps and steps
  Lora lora;        // adapters that are trained in place of weights
  CpComm cp_comm = CpComm::p2p;
  std::vector<std::int64_t> hierarchical_cp_sizes;  // of a2a_p2p: U, c/U; empty: as heads allow
  std::vector<std::int64_t> stage_layers;  // layers of each virtual stage in order; empty: as even as can be
  // Forward passes run beside backward passes of another microbatch, and each hides the other's exchanges
  // between experts; a rank runs one more forward pass ahead [Megatron-Core,
  // core/pipeline_parallel/combined_1f1b.py].
  bool overlap_expert_all_to_all = false;
  std::int64_t microbatch_group_size =
      0;  // where interleaved: that go through a virtual stage in a row; 0: p
  friend bool operator==(const Strategy&, const Strategy&) = default;
};

// Whether passes with this recomputation can run beside each other: what experts exchange must not run again.
inline bool goes_beside(const Recomputation& recompute) {
  const auto exchanges = [](std::string_view name) {
    name.remove_prefix(name.rfind('.') + 1);  // of one kind of layers: "wide.moe"
    return name == "moe" || name == "dispatch" || name == "combine";
  };
  return recompute.policy != RecomputePolicy::full && !recompute.window &&
         std::none_of(recompute.ops.begin(), recompute.ops.end(), exchanges);
}

struct Workload {
  std::int64_t global_batch = 1;  // B
  std::int64_t sequence = 0;      // s
  MoeImbalance moe_imbalance;     // I, load of the rank whose experts are wanted most, times the mean
  friend bool operator==(const Workload&, const Workload&) = default;
};

// The fields that say how many ranks an axis has. An axis without one has one rank.
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

// Whether each of the ranks that hold the same weights steps its part of them.
constexpr bool shards_optimizer(const Strategy& strategy) {
  return strategy.data_sharding != DataSharding::none;
}

constexpr AxisSizes axis_sizes(const Strategy& strategy) {
  AxisSizes sizes;
  for (const AxisField& field : axis_fields) sizes[field.axis] = strategy.*field.size;
  return sizes;
}

constexpr std::int64_t devices(const Strategy& strategy) { return ranks(grid_of(axis_sizes(strategy))); }

// How many ranks hold the same weights outside experts: d c.
constexpr std::int64_t replicas(const Strategy& strategy) {
  return replicas(axis_sizes(strategy), WeightClass::dense);
}

// That hold a copy of the model and work on a part of the batch: t c p.
constexpr std::int64_t devices_of_replica(const Strategy& strategy) {
  return strategy.tensor_parallel * strategy.context_parallel * strategy.pipeline_parallel;
}

// n = B/(b d). Meaningful for legal strategies only.
constexpr std::int64_t microbatches(const Strategy& strategy, const Workload& workload) {
  return workload.global_batch / (strategy.micro_batch * strategy.data_parallel);
}

// An interleaved schedule sends microbatches through its virtual stages in groups: by default of p, which
// then divides n, or of more. The last group is what is left, and no smaller than p either, for otherwise its
// passes would wait for each other [Megatron-Core, core/pipeline_parallel/schedules.py,
// microbatch_group_size_per_vp_stage].
constexpr bool is_group_size(std::int64_t size, std::int64_t ranks, std::int64_t microbatches) {
  return ranks <= size && size <= microbatches && (microbatches % size == 0 || microbatches % size >= ranks);
}

// The smallest group, which keeps fewest passes alive; 0 where there are fewer microbatches than ranks.
constexpr std::int64_t least_group_size(std::int64_t ranks, std::int64_t microbatches) {
  for (std::int64_t size = ranks; size <= microbatches; ++size) {
    if (is_group_size(size, ranks, microbatches)) return size;
  }
  return 0;
}

constexpr std::int64_t group_size(const Strategy& strategy) {
  return strategy.microbatch_group_size > 0 ? strategy.microbatch_group_size : strategy.pipeline_parallel;
}

// Of so many parts that share the experts alike, ranks or nodes, how many have one of the q that a token goes
// to.
double parts_per_token(const Bindings& letters, double parts);

// Keys that a query meets behind a window (0: none), where a causal mask is counted whole as without one:
// twice the area of the window in the mask, s w - w^2/2, over s. All s from w = s on.
double keys_met(std::int64_t window, double sequence);

// Keys that a query meets in its own chunk of so many tokens (0: the whole sequence is one), counted
// likewise. The last chunk may be shorter.
double keys_in_chunk(std::int64_t chunk, double sequence);

// The one place where the paper's letters meet numbers: those of a model, and what they stand for in layers
// of a kind.
Bindings bindings(const Transformer& model, const Strategy& strategy, const Workload& workload);
Bindings bindings_of(const KindSizes& sizes, Bindings of_model);

// What the ranks of a strategy divide of a model's vocabulary on a training stack.
inline VocabularyParallel vocabulary_parallel(const Transformer& model, const Strategy& strategy,
                                              const Software& software) {
  if (strategy.tensor_parallel == 1) return {};
  return model.architecture.tied_embeddings ? of_tied(software.vocabulary) : software.vocabulary;
}

// Whether rows of experts of fewer than 16 bits are padded as they are routed, and not by copying them.
inline bool routes_padded(const Strategy& strategy) {
  return strategy.moe_router_padding || sends_padded(strategy.moe_dispatcher);
}

// The layers of a model as a strategy computes them on a training stack.
inline LayerChoices layer_choices(const Transformer& model, const Strategy& strategy,
                                  const Software& software) {
  return {.micro_batch = strategy.micro_batch,
          .precision = strategy.precision,
          .scope = strategy.precision_scope,
          .dispatcher = strategy.moe_dispatcher,
          .pads_rows = !routes_padded(strategy),
          .pads_to_capacity = strategy.moe_pad_to_capacity,
          .kernels = kernels_of(software),
          .vocabulary = vocabulary_parallel(model, strategy, software)};
}
inline ModelLayers layers_of(const Transformer& model, const Strategy& strategy,
                             const Software& software = {}) {
  const CrossEntropy loss =
      model.architecture.kernels.cross_entropy.value_or(kernels_of(software).cross_entropy);
  return with_adapters(layers_of(model, layer_choices(model, strategy, software)), loss, strategy.lora);
}

// Whether both have layers of the same kinds in the same order, of whatever precision each is.
constexpr bool same_layer_kinds(const Strategy& x, const Strategy& y) {
  const auto ends = [](const Strategy& of) {
    const PrecisionScope& scope = of.precision_scope;
    return is_narrow(of.precision) ? std::array{scope.bf16_layers_at_start, scope.bf16_layers_at_end}
                                   : std::array<std::int64_t, 2>{};
  };
  return ends(x) == ends(y);
}

// Of one of them, where all are alike.
OpTable layer_table(const Transformer& model, const Strategy& strategy);

Sharding sharding_of(const Transformer& model, const Strategy& strategy);
// Layers of a kind may have fewer key/value heads than ranks where those of the model have not.
Sharding sharding_of(const KindSizes& sizes, Sharding of_model, std::int64_t tensor_parallel);

// The recomputation that a policy means on a layer's table, some of whose exchanges run among the ranks that
// divide it. Of the names of `ops`, those count that are ops of the table.
RecomputedOps recomputed_ops_of(const OpTable& table, const Recomputation& recompute,
                                const Sharding& sharding);
// On a kind's, of which "KIND.OP" names an op too. Of layers of multi-token prediction, policies and modules
// are, and no ops by their names; what else stands at the ends of a model is not recomputed.
RecomputedOps recomputed_ops_of(const LayerKind& kind, const Recomputation& recompute,
                                const Sharding& sharding);

// Layers of a virtual stage of `layers` that the backward pass recomputes: all, or the first K of the block
// method.
std::int64_t recomputed_layers(std::int64_t layers, const Recomputation& recompute);
// Whether that is all of any stage.
constexpr bool recomputes_all_layers(const Recomputation& recompute) {
  return recompute.layers == 0 || recompute.method != RecomputeMethod::block;
}

// Which layers are kept otherwise than the rest: those that are recomputed, or the first ones whose saved
// tensors wait on the host.
Recomputation set_apart(const Recomputation& recompute, const Offload& offload);

// Layers of virtual stage c (of p m, in the order of the model). Where p m does not divide L and no list is
// given, one more layer goes to chunks counted back from the last but one: early ranks hold the most
// microbatches, and the last holds the head.
std::vector<std::int64_t> layers_by_stage(std::int64_t layers, const Strategy& strategy);
inline std::vector<std::int64_t> layers_by_stage(const Transformer& model, const Strategy& strategy) {
  return layers_by_stage(model.layers, strategy);
}

template <>
inline constexpr std::array<Spelling<RecomputeMethod>, 2> spellings<RecomputeMethod>{{
    {RecomputeMethod::block, "block"},
    {RecomputeMethod::uniform, "uniform"},
}};

}  // namespace headroom
