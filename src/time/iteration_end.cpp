#include "headroom/time/iteration_end.hpp"

#include <algorithm>

#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

Bytes gradient_bytes(double parameters, const Strategy& strategy) {
  return Bytes(parameters * static_cast<double>(size_of(strategy.gradients)));
}

// Bytes that a step moves for each parameter, kernel by kernel [Megatron-LM, Float16OptimizerWithFloat16Params].
double optimizer_bytes(Dtype gradients) {
  const bool half = gradients == Dtype::half;
  const double zero_gradients = half ? 2 : 4;
  const double to_fp32 = half ? 6 : 0;  // half read, fp32 written
  constexpr double unscale = 4 + 4;
  constexpr double norm_and_clip = 4 + 4 + 4;  // read for the norm, then scaled in place
  constexpr double adam = 4 + 3 * (4 + 4);     // gradient read; weight and two moments read and written
  constexpr double to_half = 4 + 2;
  return zero_gradients + to_fp32 + unscale + norm_and_clip + adam + to_half;
}

}  // namespace

Seconds data_parallel_time(double parameters, const Strategy& strategy, std::int64_t devices_per_node,
                           const Performance& performance, const Software& software) {
  const Group group = data_parallel_group(strategy, devices_per_node);
  const Bytes gradients = gradient_bytes(parameters, strategy);
  const bool shards_sums =
      strategy.distributed_optimizer && software.gradient_reduction == GradientReduction::reduce_scatter;
  const CollectiveKind kind = shards_sums ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  Seconds time = collective_time(kind, gradients, group, performance);
  if (strategy.distributed_optimizer) {
    const Bytes weights(parameters * static_cast<double>(size_of(Dtype::half)));
    time += collective_time(CollectiveKind::all_gather, weights, group, performance);
  }
  return time;
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
  return Bytes(parameters / shards * optimizer_bytes(strategy.gradients)) / streaming_bandwidth(performance);
}

}  // namespace headroom
