// Routes of expert tokens that are sent once to each rank of their experts.
#pragma once

#include <optional>

#include "headroom/time/collective.hpp"
#include "headroom/time/op_work.hpp"

namespace headroom {

// Routes of the two halves of a collective; nothing if it does not send a token once to each rank. A gradient
// returns by the kernel that the values did not take.
struct TokenRoutes {
  std::optional<TokenRoute> forward;
  std::optional<TokenRoute> backward;
};
// Returns the bytes of the map of all tokens to all experts that HybridEP's ranks gather ahead of a dispatch of
// tokens: a byte for each pair [DeepEP, csrc/hybrid_ep/executor/executor.cu, allgather_routing_map]. Zero for
// other collectives.
Bytes routing_map_bytes(const Collective& collective, const Group& group, const Setting& setting);

// Returns the routes of a collective. Their kernels belong to `setting.performance`, which must outlive them.
TokenRoutes token_routes(const Collective& collective, const Group& group, const Setting& setting);

}  // namespace headroom
