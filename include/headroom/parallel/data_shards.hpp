// Sharding over data-parallel ranks on a training stack: the number of shards of each class of
// weights, the ranks that hold them, and how often weights are gathered and gradients reduced.
//
// The ranks that hold the same weights of a class (parallel/axes.hpp) form shard groups. Each group shares
// one copy of what is sharded. Gradients are reduced within each group, then across groups over the ranks
// with the same shard.
#pragma once

#include "headroom/hardware/software.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns the number of copies of what is sharded: 1 unless a strategy shards in groups of `shard_size`
// ranks.
constexpr std::int64_t shard_copies(const Strategy& strategy) {
  if (strategy.shard_size == 0 || strategy.data_sharding == DataSharding::none) return 1;
  return replicas(strategy) / strategy.shard_size;
}

// Returns the number of ranks that share one copy of a class of weights, or 1 if nothing is sharded.
constexpr std::int64_t shards(const Strategy& strategy, WeightClass weights) {
  if (strategy.data_sharding == DataSharding::none) return 1;
  return replicas(axis_sizes(strategy), weights) / shard_copies(strategy);
}

constexpr Group shard_group(const Strategy& strategy, WeightClass weights, std::int64_t devices_per_node) {
  return part_of_replica_group(axis_sizes(strategy), weights, shards(strategy, weights), GroupPart::inner,
                               devices_per_node);
}
constexpr Group copies_group(const Strategy& strategy, WeightClass weights, std::int64_t devices_per_node) {
  return part_of_replica_group(axis_sizes(strategy), weights, shards(strategy, weights), GroupPart::outer,
                               devices_per_node);
}

constexpr bool shards_gradients(const Strategy& strategy) {
  return strategy.data_sharding >= DataSharding::zero2;
}
constexpr bool shards_weights(const Strategy& strategy) {
  return strategy.data_sharding == DataSharding::zero3;
}

// Returns whether shards are of the fp32 main parameters that the optimizer steps. Without main parameters,
// the optimizer steps 16-bit weights, and shards are of these.
constexpr bool shards_main_params(const Software& software, const Optimizer& optimizer) {
  return software.sharding.weights == ShardedWeights::main_params &&
         optimizer.main_params == MainParams::fp32;
}

// Returns whether the passes of every microbatch gather weights, unit by unit. A pipeline rank gathers its
// weights once an iteration [torch, distributed/pipelining/stage.py, backward_maybe_with_nosync].
constexpr bool gathers_in_passes(const Strategy& strategy) {
  return shards_weights(strategy) && strategy.pipeline_parallel == 1;
}

// Returns whether a rank still has all its gathered weights at the end of a forward pass.
constexpr bool keeps_gathered(const Strategy& strategy) {
  return strategy.no_reshard_after_forward || strategy.pipeline_parallel > 1;
}

// Returns whether pipeline ranks reduce the gradients of a virtual stage to shards after each group of
// microbatches, while the next virtual stage computes. Gradients of two virtual stages are then whole at a
// time. This is ZeRO 2 under an interleaved pipeline [Llama 3, arXiv:2407.21783, section 3.3.2 and 3.3.4].
constexpr bool reduces_by_group(const Strategy& strategy) {
  return strategy.data_sharding == DataSharding::zero2 && strategy.pipeline_parallel > 1;
}

// Returns how often an iteration reduces the gradients of a virtual stage then.
constexpr std::int64_t reduced_groups(const Strategy& strategy, const Workload& workload) {
  const std::int64_t group = group_size(strategy);
  return (microbatches(strategy, workload) + group - 1) / group;
}

// Returns whether every backward pass reduces its gradients, so that no unsharded gradient outlives it. A
// stack that sums the gradients of several microbatches first also reduces in the pass if there is only one
// [accelerate, Accelerator.accumulate enters no_sync only between steps of the optimizer].
constexpr bool reduces_in_passes(const Strategy& strategy, const Workload& workload,
                                 const Software& software) {
  return shards_gradients(strategy) && strategy.pipeline_parallel == 1 &&
         (!software.sharding.sums_before_reduction || strategy.sync_each_batch ||
          microbatches(strategy, workload) == 1);
}

// Returns the dtype of the gradients that an optimizer step reads. If ranks hold the weights that are
// stepped, gradients have the dtype of these weights, whatever the dtype of their sum [PyTorch,
// torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_reduce, orig_dtype].
constexpr Dtype stepped_gradient_dtype(const Strategy& strategy, const Software& software) {
  if (software.sharding.weights == ShardedWeights::copies) return strategy.gradient_dtype;
  return shards_main_params(software, strategy.optimizer) ? Dtype::fp32 : Dtype::half;
}

// Returns the dtype of the gradients that a rank keeps from one microbatch to the next. Gradients that are
// summed unsharded and reduced at the end have the dtype of the sum [PyTorch,
// torch/distributed/fsdp/_fully_shard/_fsdp_param.py, to_accumulated_grad_if_needed].
constexpr Dtype kept_gradient_dtype(const Strategy& strategy, const Workload& workload,
                                    const Software& software) {
  const bool sums_whole = shards_gradients(strategy) && !reduces_in_passes(strategy, workload, software);
  return sums_whole ? strategy.gradient_dtype : stepped_gradient_dtype(strategy, software);
}

// Returns the dtype in which data-parallel ranks reduce gradients. Unsharded gradients are reduced in the
// dtype that the step reads.
constexpr Dtype reduced_gradient_dtype(const Strategy& strategy, const Software& software) {
  return shards_gradients(strategy) ? strategy.gradient_dtype : stepped_gradient_dtype(strategy, software);
}

// Returns whether a rank has its gradients of a class twice: as the backward pass makes them, and in the
// buckets that are reduced.
constexpr bool copies_gradients(const Strategy& strategy, const Software& software, WeightClass weights) {
  return software.sharding.copies_gradients && strategy.data_sharding == DataSharding::none &&
         replicas(axis_sizes(strategy), weights) > 1;
}

// Returns whether reducing unsharded gradients leaves each rank only its shard of the sums.
constexpr bool reduces_to_shards(const Strategy& strategy, const Software& software) {
  return shards_optimizer(strategy) && software.gradient_reduction == GradientReduction::reduce_scatter;
}

// The fields of a strategy that say how data-parallel ranks shard.
struct ShardingChoice {
  DataSharding data_sharding = DataSharding::none;
  std::int64_t shard_size = 0;
  bool no_reshard_after_forward = false;
  bool sync_each_batch = false;
  friend bool operator==(const ShardingChoice&, const ShardingChoice&) = default;
};
constexpr ShardingChoice sharding_choice(const Strategy& strategy) {
  return {strategy.data_sharding, strategy.shard_size, strategy.no_reshard_after_forward,
          strategy.sync_each_batch};
}
constexpr void set_sharding(Strategy& strategy, const ShardingChoice& choice) {
  strategy.data_sharding = choice.data_sharding;
  strategy.shard_size = choice.shard_size;
  strategy.no_reshard_after_forward = choice.no_reshard_after_forward;
  strategy.sync_each_batch = choice.sync_each_batch;
}
inline Strategy with_sharding(Strategy strategy, const ShardingChoice& choice) {
  set_sharding(strategy, choice);
  return strategy;
}

// Returns whether two sharding choices give a layout the same passes and shards, and sum gradients in the
// same dtype. Such strategies differ only in the state of ranks and at the end of an iteration.
constexpr bool same_passes(const ShardingChoice& x, const ShardingChoice& y, const Strategy& layout,
                           const Software& software) {
  const bool whole = x.data_sharding == DataSharding::none || y.data_sharding == DataSharding::none;
  if (!whole && x.shard_size != y.shard_size) return false;
  const bool x_shards = x.data_sharding >= DataSharding::zero2;
  const bool y_shards = y.data_sharding >= DataSharding::zero2;
  if (x_shards == y_shards) return x == y || layout.pipeline_parallel > 1 || !x_shards;
  return layout.pipeline_parallel > 1 &&
         stepped_gradient_dtype(layout, software) == layout.gradient_dtype;  // kept_gradient_dtype
}

// Returns whether the backward pass allocates the gradients: the step before has freed them, and the
// iteration has one microbatch and no pipeline [PyTorch, optim/optimizer.py, zero_grad, set_to_none]. With
// step_in_backward, no gradients grow.
constexpr bool grows_gradients(const Strategy& strategy, const Workload& workload, const Software& software) {
  return software.memory.frees_gradients && !strategy.step_in_backward && strategy.pipeline_parallel == 1 &&
         !has_weight_passes(strategy.schedule) && microbatches(strategy, workload) == 1;
}

// Weight gradients that a backward pass makes and does not add to sums.
struct PassGradients {
  Dtype dtype = Dtype::half;
  // Gradients stay until their unit's backward pass is done, for the reduction or the step. Otherwise each is
  // stepped and freed after its op.
  bool stay = true;
};

// Returns the gradients that a pass makes. Absent: they are added to sums at once.
constexpr std::optional<PassGradients> pass_gradients(const Strategy& strategy, const Workload& workload,
                                                      const Software& software) {
  if (reduces_in_passes(strategy, workload, software)) return PassGradients{};
  const Dtype dtype = kept_gradient_dtype(strategy, workload, software);
  if (strategy.step_in_backward) return PassGradients{.dtype = dtype, .stay = false};
  if (!grows_gradients(strategy, workload, software)) return std::nullopt;
  return PassGradients{.dtype = dtype};
}

// Returns whether passes gather weights or reduce gradients unit by unit.
constexpr bool has_units(const Strategy& strategy, const Workload& workload, const Software& software) {
  return gathers_in_passes(strategy) || reduces_in_passes(strategy, workload, software);
}

// Returns whether the bytes of weights and gradients on a rank differ from unit to unit of a pass.
constexpr bool has_unit_bytes(const Strategy& strategy, const Workload& workload, const Software& software) {
  return has_units(strategy, workload, software) || grows_gradients(strategy, workload, software) ||
         strategy.step_in_backward;
}

}  // namespace headroom
