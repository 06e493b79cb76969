// Transfers between a rank and its host during passes (parallel/offload.hpp), as part of ModelExchanges.
#pragma once

#include "headroom/memory/stage.hpp"
#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// Sets the transfers of offloaded shards of weights and gradients. `link` is the bandwidth one way.
void set_parameter_transfers(ModelExchanges& exchanges, const ModelParameters& parameters,
                             const Strategy& strategy, const Workload& workload, const Software& software,
                             BytesPerSecond link);

// Sets the transfers of offloaded activations. `link` is the bandwidth one way. If only the first of `layers`
// layers offload all that they save, their transfers continue beside the later layers, which offload nothing.
// Each layer then gets an equal share of the transfers [Transformer Engine, pytorch/cpu_offload.py,
// OffloadSynchronizer: the transfer of layer i ends before layer L - K + i].
void set_activation_transfers(ModelExchanges& exchanges, const ModelActivations& activations,
                              const Offload& offload, std::int64_t layers, BytesPerSecond link);

}  // namespace headroom
