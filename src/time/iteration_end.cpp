#include "headroom/time/iteration_end.hpp"

#include <algorithm>

#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

Bytes gradient_bytes(double parameters, const Strategy& strategy) {
  return Bytes(parameters * static_cast<double>(size_of(strategy.gradient_dtype)));
}

// Bytes that a step moves for each of its parameters, kernel by kernel [Megatron-LM,
// Float16OptimizerWithFloat16Params]. Zeroing the gradients comes on top.
double optimizer_bytes(Dtype gradients) {
  const bool half = gradients == Dtype::half;
  const double to_fp32 = half ? 6 : 0;  // half read, fp32 written
  constexpr double unscale = 4 + 4;
  constexpr double norm_and_clip = 4 + 4 + 4;  // read for the norm, then scaled in place
  constexpr double adam = 4 + 3 * (4 + 4);     // gradient read; weight and two moments read and written
  constexpr double to_half = 4 + 2;
  return to_fp32 + unscale + norm_and_clip + adam + to_half;
}

}  // namespace

DataParallelTimes data_parallel_times(double parameters, const Strategy& strategy,
                                      std::int64_t devices_per_node, const Performance& performance,
                                      const Software& software) {
  const Group group = data_parallel_group(strategy, devices_per_node);
  const Bytes gradients = gradient_bytes(parameters, strategy);
  const bool shards_sums =
      strategy.distributed_optimizer && software.gradient_reduction == GradientReduction::reduce_scatter;
  const CollectiveKind kind = shards_sums ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const Bytes weights(strategy.distributed_optimizer ? parameters * static_cast<double>(size_of(Dtype::half))
                                                     : 0);
  const bool gathers = weights > Bytes(0);
  return {.reduction = collective_time(kind, gradients, group, performance),
          .gather = collective_time(gathers ? CollectiveKind::all_gather : CollectiveKind::none, weights,
                                    group, performance),
          .within_fit = within_fit(gradients, group, performance.rates.collectives)};
}

Seconds exposed_data_parallel_time(Seconds reduction, Seconds backward, const Performance& performance,
                                   const Software& software) {
  if (!software.overlaps_data_parallel) return reduction;
  return std::max(reduction - backward, performance.rates.collectives.overlap_loss.value * reduction);
}

Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, std::int64_t devices_per_node,
                            const Performance& performance) {
  if (strategy.pipeline_parallel == 1 || !model.architecture.tied_embeddings) return Seconds(0);
  const auto rows = static_cast<double>(padded_vocabulary(model, strategy.tensor_parallel)) /
                    static_cast<double>(strategy.tensor_parallel);
  const Bytes gradients = gradient_bytes(rows * static_cast<double>(model.hidden), strategy);
  return collective_time(CollectiveKind::all_reduce, gradients,
                         tied_embedding_group(strategy, devices_per_node), performance);
}

Seconds optimizer_time(double parameters, const Strategy& strategy, const Performance& performance) {
  const double shards = strategy.distributed_optimizer ? static_cast<double>(strategy.data_parallel) : 1;
  // Every rank holds, and zeroes, the gradients of all its parameters, but steps its shard only.
  const Bytes moved = gradient_bytes(parameters, strategy) +
                      Bytes(parameters / shards * optimizer_bytes(strategy.gradient_dtype));
  return moved / streaming_bandwidth(performance);
}

}  // namespace headroom
