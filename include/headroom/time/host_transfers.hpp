// What the passes of a rank send to the host and fetch from there (parallel/offload.hpp), as part of what they exchange.
#pragma once

#include "headroom/memory/stage.hpp"
#include "headroom/time/unit_exchanges.hpp"

namespace headroom {

// At so many bytes a second one way: of the shards that the host keeps.
void set_parameter_transfers(ModelExchanges& exchanges, const ModelParameters& parameters,
                             const Strategy& strategy, const Workload& workload, const Software& software,
                             BytesPerSecond link);

// Likewise of layers that leave so much there. Where the first of so many layers leave all that they save, transfers go on beside
// those after them, which leave none: each has its part of them all [Transformer Engine, pytorch/cpu_offload.py,
// OffloadSynchronizer: that of layer i ends before layer L - K + i].
void set_activation_transfers(ModelExchanges& exchanges, const ModelActivations& activations,
                              const Offload& offload, std::int64_t layers, BytesPerSecond link);

}  // namespace headroom
