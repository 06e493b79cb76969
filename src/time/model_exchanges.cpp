#include "headroom/time/model_exchanges.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/time/launches.hpp"
#include "headroom/time/streaming.hpp"

namespace headroom {
namespace {

constexpr auto half_size = static_cast<double>(size_of(Dtype::half));

PassCost copies(Bytes moved, const Performance& performance, const Software& software) {
  PassCost cost{.gemm = {}, .attention = {}, .memory_bound = moved / streaming_bandwidth(performance)};
  cost.operations = moved > Bytes(0) && launches_operations(software) ? 1 : 0;
  cost.host = host_time(real(cost.operations), 0, launch_times(performance.rates.host, software));
  return cost;
}

}  // namespace

ModelExchanges model_exchanges(const ModelLayers& layers, const ModelParameters& parameters,
                               const Strategy& strategy, const Workload& workload,
                               std::int64_t devices_per_node, const Performance& performance,
                               const Software& software) {
  ModelExchanges exchanges{.kinds = {},
                           .keeps_gathered = keeps_gathered(strategy),
                           .ends_in_root = software.sharding.ends_in_root};
  const bool gathers = gathers_in_passes(strategy);
  const bool reduces = reduces_in_passes(strategy, workload, software);
  const bool in_buffers = software.sharding.copies_units;
  const double gradient = real(size_of(strategy.gradient_dtype));
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    Parameters held = parameters.kinds[i];
    if (layers.kinds[i].position == KindPosition::last) held = without_shared(held, parameters);
    UnitExchange& unit = exchanges.kinds.emplace_back();
    unit.position = layers.kinds[i].position;
    const auto add = [&](LinkTimes& times, CollectiveKind kind, Bytes bytes, const Group& group) {
      Seconds& link = group.ranks > group.ranks_in_node ? times.between_nodes : times.in_node;
      link += collective_time(kind, bytes, group, performance);
      unit.within_fit = unit.within_fit && within_fit(bytes, group, performance.rates.collectives);
    };
    const auto exchange = [&](WeightClass weights, const Parameters& share) {
      if (total(share) == 0) return;
      const Group ranks = shard_group(strategy, weights, devices_per_node);
      if (gathers) add(unit.gather, CollectiveKind::all_gather, gathered_bytes(share, strategy), ranks);
      const double count = total(with_gradients(share, strategy, software));
      if (!reduces || count == 0) return;
      const Bytes gradients(count * gradient);
      add(unit.reduction, CollectiveKind::reduce_scatter, gradients, ranks);
      const Group alike = copies_group(strategy, weights, devices_per_node);
      if (alike.ranks > 1)
        add(unit.reduction, CollectiveKind::all_reduce, gradients / real(ranks.ranks), alike);
    };
    exchange(WeightClass::dense, of_class(held, WeightClass::dense));
    exchange(WeightClass::expert, of_class(held, WeightClass::expert));
    if (!in_buffers) continue;
    // Copies run from the gathered buffer into the weights, and from the gradients into the reduced buffer.
    if (gathers) unit.gather_copies = copies(2 * gathered_bytes(held, strategy), performance, software);
    if (reduces)
      unit.reduction_copies =
          copies(Bytes(total(with_gradients(held, strategy, software)) * (half_size + gradient)), performance,
                 software);
  }
  return exchanges;
}

}  // namespace headroom
