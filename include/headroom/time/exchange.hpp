// Transfers in which every pair of devices has its own path through the switch of a node: all-to-all and send/receive.
//
// They need one step, whatever the number of ranks, and take the launch, step and bandwidth of the collectives
// (time/collective.hpp), in whose two protocols they run too:
//   launch + step + wire / bandwidth [+ shard / local bandwidth]        the faster runs
//   all-to-all: wire = (r - 1)/r of a rank's bytes, and its own shard is copied; send/receive: wire = bytes
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/rates.hpp"

namespace headroom {

// `bytes` are what one rank holds before and after.
Seconds all_to_all_time(Bytes bytes, std::int64_t ranks, const CollectiveRates& rates);

Seconds send_receive_time(Bytes bytes, const CollectiveRates& rates);

}  // namespace headroom
