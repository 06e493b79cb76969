#include "headroom/time/iteration_end.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/gemm.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

Bytes gradient_bytes(double parameters, const Strategy& strategy) {
  return Bytes(parameters * static_cast<double>(size_of(strategy.gradient_dtype)));
}

// Bytes that a step moves for each of its parameters where one kernel reads gradients, master weights and moments of any
// dtype and writes half-precision weights too [Transformer Engine, FusedAdam].
double precision_aware_bytes(const Strategy& strategy) {
  constexpr auto half = static_cast<double>(size_of(Dtype::half));
  const auto gradient = static_cast<double>(size_of(strategy.gradient_dtype));
  const auto& [main_params, exp_avg, exp_avg_sq] = strategy.optimizer;
  const double norm_and_clip = 3 * gradient;
  // The low bits of a master weight need the high ones, which are the weight; without one the weight itself is stepped.
  const bool reads_weight = main_params == MainParams::remainder || main_params == MainParams::none;
  const double weight = reads_weight ? half + half : half;
  return norm_and_clip + gradient + weight +
         2 * (size_of(main_params) + size_of(exp_avg) + size_of(exp_avg_sq));
}

// The same where the weights are fp32 themselves and so are gradients [torch.optim.AdamW, fused].
double fused_adam_bytes(const Strategy& strategy) {
  constexpr auto fp32 = static_cast<double>(size_of(Dtype::fp32));
  constexpr double norm_and_clip = 3 * fp32;
  const double moments = size_of(strategy.optimizer.exp_avg) + size_of(strategy.optimizer.exp_avg_sq);
  return norm_and_clip + fp32 + 2 * (fp32 + moments);
}

// The same kernel by kernel, with fp32 state [Megatron-LM, Float16OptimizerWithFloat16Params]. Zeroing the gradients comes
// on top.
double optimizer_bytes(const Strategy& strategy, const Software& software) {
  if (software.sharding.weights == ShardedWeights::main_params) return fused_adam_bytes(strategy);
  if (strategy.optimizer != OptimizerDtypes{}) return precision_aware_bytes(strategy);
  const Dtype gradients = strategy.gradient_dtype;
  constexpr auto half = static_cast<double>(size_of(Dtype::half));
  constexpr auto fp32 = static_cast<double>(size_of(Dtype::fp32));
  const double to_fp32 = is_half(gradients) ? half + fp32 : 0;  // read, written
  constexpr double unscale = fp32 + fp32;
  constexpr double norm_and_clip = fp32 + fp32 + fp32;  // read for the norm, then scaled in place
  constexpr double adam = fp32 + 3 * (fp32 + fp32);  // gradient read; weight and two moments read and written
  constexpr double to_half = fp32 + half;
  return to_fp32 + unscale + norm_and_clip + adam + to_half;
}

// Bytes that casting a weight of products of fewer than 16 bits moves, once an iteration: from 16 bits, or, where there are none,
// the second copy from the first, which was gathered.
double cast_bytes(const Strategy& strategy, const Device& device) {
  const PrecisionRow& row = row_of(strategy.precision);
  const int copies = copies_of_factor(device, row.dtype);
  const double copy = weight_size(row.dtype);
  if (strategy.fp8_param_gather && strategy.precision != Precision::mxfp8) return copies == 1 ? 0 : 2 * copy;
  const int reads = quantization_passes(row.dtype, row.scale_known);
  return real(reads * size_of(Dtype::half)) + real(copies) * copy;
}

}  // namespace

DataParallelTimes data_parallel_times(const Parameters& parameters, const Strategy& strategy,
                                      std::int64_t devices_per_node, const Performance& performance,
                                      const Software& software) {
  const bool shards_sums =
      shards_optimizer(strategy) && software.gradient_reduction == GradientReduction::reduce_scatter;
  const CollectiveKind kind = shards_sums ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const bool reduces = !reduces_in_passes(strategy, software);
  const bool gathers = shards_optimizer(strategy) && !gathers_in_passes(strategy);
  DataParallelTimes times;
  const auto add = [&](WeightClass weight_class, const Parameters& held) {
    if (total(held) == 0) return;
    const Bytes gradients = gradient_bytes(total(held), strategy);
    const Group group = shards_sums ? shard_group(strategy, weight_class, devices_per_node)
                                    : data_parallel_group(strategy, devices_per_node, weight_class);
    if (reduces) {
      times.reduction += collective_time(kind, gradients, group, performance);
      times.within_fit = times.within_fit && within_fit(gradients, group, performance.rates.collectives);
    }
    if (reduces && shards_sums) {
      const Group copies = copies_group(strategy, weight_class, devices_per_node);
      times.reduction +=
          collective_time(CollectiveKind::all_reduce, gradients / real(group.ranks), copies, performance);
    }
    if (gathers) {
      times.gather += collective_time(CollectiveKind::all_gather, gathered_bytes(held, strategy),
                                      shard_group(strategy, weight_class, devices_per_node), performance);
    }
  };
  add(WeightClass::dense, {parameters.dense, 0, parameters.narrow_dense, 0});
  add(WeightClass::expert, {0, parameters.expert, 0, parameters.narrow_expert});
  return times;
}

double buckets(const Parameters& parameters, const Strategy& strategy, const Software& software) {
  const double size = std::max(real(software.bucket_parameters),
                               real(software.bucket_parameters_per_replica) * real(replicas(strategy)));
  return std::max(1.0, std::ceil(total(parameters) / size));
}

Seconds exposed_by_bucket(Seconds collective, Seconds pass, double buckets, double overlap_loss) {
  if (buckets == 1) return collective;  // and no pass, however long, changes that
  const double beside = (buckets - 1) / buckets;
  const Seconds alone = collective / buckets;
  return std::max(collective - beside * pass, alone + overlap_loss * (collective - alone));
}

Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, std::int64_t devices_per_node,
                            const Performance& performance) {
  const bool on_both_ends = model.architecture.tied_embeddings || model.mtp_layers > 0;
  if (strategy.pipeline_parallel == 1 || !on_both_ends) return Seconds(0);
  const auto rows = static_cast<double>(padded_vocabulary(model, strategy.tensor_parallel)) /
                    static_cast<double>(strategy.tensor_parallel);
  const Bytes gradients = gradient_bytes(rows * static_cast<double>(model.hidden), strategy);
  return collective_time(CollectiveKind::all_reduce, gradients,
                         tied_embedding_group(strategy, devices_per_node), performance);
}

Seconds optimizer_time(const Parameters& parameters, const Strategy& strategy, const Performance& performance,
                       const Software& software) {
  const auto shard = [&](double held, WeightClass weights) { return held / real(shards(strategy, weights)); };
  // Every rank zeroes the gradients that it holds, but steps its shard only.
  const double stepped =
      shard(parameters.dense, WeightClass::dense) + shard(parameters.expert, WeightClass::expert);
  const bool shards_sums = reduces_in_passes(strategy, software);
  Bytes moved = gradient_bytes(shards_sums ? stepped : total(parameters), strategy) +
                Bytes(stepped * optimizer_bytes(strategy, software));
  const double narrow = parameters.narrow_dense + parameters.narrow_expert;
  if (narrow > 0) moved += Bytes(narrow * cast_bytes(strategy, performance.device));
  return moved / streaming_bandwidth(performance);
}

}  // namespace headroom
