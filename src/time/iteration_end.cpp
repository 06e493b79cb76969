#include "headroom/time/iteration_end.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {

DataParallelTimes data_parallel_times(const Parameters& parameters, const Strategy& strategy,
                                      const Workload& workload, std::int64_t devices_per_node,
                                      const Performance& performance, const Software& software) {
  const bool shards_sums = reduces_to_shards(strategy, software);
  const CollectiveKind kind = shards_sums ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const bool reduces = !reduces_in_passes(strategy, workload, software);
  const bool gathers = shards_optimizer(strategy) && !gathers_in_passes(strategy);
  DataParallelTimes times;
  const auto add = [&](WeightClass weight_class, const Parameters& held) {
    const Parameters stepped = trained(held);
    if (total(stepped) == 0) return;
    const Bytes gradients(total(with_gradients(held, strategy, software)) *
                          real(size_of(reduced_gradient_dtype(strategy, software))));
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
      times.gather += collective_time(CollectiveKind::all_gather,
                                      gathered_bytes(shards_weights(strategy) ? held : stepped, strategy),
                                      shard_group(strategy, weight_class, devices_per_node), performance);
    }
  };
  add(WeightClass::dense, of_class(parameters, WeightClass::dense));
  add(WeightClass::expert, of_class(parameters, WeightClass::expert));
  return times;
}

Seconds bucket_copies_time(const Parameters& parameters, const Strategy& strategy,
                           const Performance& performance, const Software& software) {
  Bytes moved;
  for (const WeightClass weights : {WeightClass::dense, WeightClass::expert}) {
    if (copies_gradients(strategy, software, weights))
      moved += 4 * Bytes(total(trained(of_class(parameters, weights))) *
                         real(size_of(stepped_gradient_dtype(strategy, software))));
  }
  return moved / streaming_bandwidth(performance);
}

double buckets(const Parameters& parameters, const Strategy& strategy, const Software& software) {
  const double size = std::max(real(software.bucket_parameters),
                               real(software.bucket_parameters_per_replica) * real(replicas(strategy)));
  return std::max(1.0, std::ceil(total(trained(parameters)) / size));
}

Seconds exposed_by_bucket(Seconds collective, Seconds pass, double buckets, double overlap_loss) {
  if (buckets == 1) return collective;  // and no pass, however long, changes that
  const double beside = (buckets - 1) / buckets;
  const Seconds alone = collective / buckets;
  return std::max(collective - beside * pass, alone + overlap_loss * (collective - alone));
}

Seconds model_copies_time(const Parameters& parameters, const Strategy& strategy,
                          std::int64_t devices_per_node, const Performance& performance,
                          const Software& software) {
  if (model_copies(strategy.schedule) == 1) return Seconds(0);
  const bool shards_sums = reduces_to_shards(strategy, software);
  const auto held = [&](double count, WeightClass weights) {
    return shards_sums ? count / real(shards(strategy, weights)) : count;
  };
  const Parameters stepped = trained(parameters);
  const double reduced = held(stepped.dense, WeightClass::dense) + held(stepped.expert, WeightClass::expert);
  return collective_time(CollectiveKind::all_reduce,
                         gradient_bytes(reduced, reduced_gradient_dtype(strategy, software)),
                         tied_embedding_group(strategy, devices_per_node), performance);
}

Seconds tied_embedding_time(const Transformer& model, const Strategy& strategy, const Workload& workload,
                            std::int64_t devices_per_node, const Performance& performance,
                            const Software& software) {
  const bool on_both_ends = model.architecture.tied_embeddings || model.mtp_layers > 0;
  if (strategy.pipeline_parallel == 1 || runs_in_v(strategy.schedule) || !on_both_ends) return Seconds(0);
  if (trains_adapters(strategy.lora)) return Seconds(0);  // the embedding is frozen
  const bool whole = vocabulary_parallel(model, strategy, software).embedding == EmbeddingParallel::none;
  const auto rows = static_cast<double>(padded_vocabulary(model, strategy.tensor_parallel)) /
                    static_cast<double>(whole ? 1 : strategy.tensor_parallel);
  const Bytes gradients = gradient_bytes(rows * static_cast<double>(model.hidden),
                                         kept_gradient_dtype(strategy, workload, software));
  return collective_time(CollectiveKind::all_reduce, gradients,
                         tied_embedding_group(strategy, devices_per_node), performance);
}

}  // namespace headroom
