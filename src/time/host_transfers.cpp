#include "headroom/time/host_transfers.hpp"

#include "headroom/core/counts.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {

void set_parameter_transfers(ModelExchanges& exchanges, const ModelParameters& parameters,
                             const Strategy& strategy, const Workload& workload, const Software& software,
                             BytesPerSecond link) {
  if (!strategy.offload.parameters) return;
  const double weight = shards_main_params(software, strategy.optimizer) ? real(size_of(Dtype::fp32))
                                                                         : real(size_of(Dtype::half));
  const bool reduces = reduces_in_passes(strategy, workload, software);
  const Dtype sent = stepped_gradient_dtype(strategy, software);
  for (std::size_t i = 0; i < exchanges.kinds.size(); ++i) {
    UnitExchange& unit = exchanges.kinds[i];
    Parameters held = parameters.kinds[i];
    if (unit.position == KindPosition::last) held = without_shared(held, parameters);
    for (const WeightClass weights : {WeightClass::dense, WeightClass::expert}) {
      const Parameters share = of_class(held, weights);
      const double count = total(trained(share));
      const double with_gradient = total(with_gradients(share, strategy, software));
      const double shards_of = real(shards(strategy, weights));
      unit.fetch += Bytes((count * weight + frozen_bytes(share, strategy.lora.base)) / shards_of) / link;
      if (reduces) unit.send += gradient_bytes(with_gradient / shards_of, sent) / link;
    }
  }
}

void set_activation_transfers(ModelExchanges& exchanges, const ModelActivations& activations,
                              const Offload& offload, std::int64_t layers, BytesPerSecond link) {
  for (std::size_t i = 0; i < exchanges.kinds.size(); ++i) {
    UnitExchange& unit = exchanges.kinds[i];
    unit.activations = activations.kinds[i].plain.on_host / link;
    unit.recomputed_activations = activations.kinds[i].recomputed.on_host / link;
    if (offload.layers == 0) continue;
    unit.recomputed_activations = (real(offload.layers) / real(layers)) * unit.recomputed_activations;
    unit.activations = unit.recomputed_activations;
  }
}

}  // namespace headroom
