// How the tokens of a layer with experts travel where each goes once to every rank of its experts.
#pragma once

#include <optional>

#include "headroom/time/collective.hpp"
#include "headroom/time/op_work.hpp"

namespace headroom {

// Of the two halves of a collective; nothing of one that does not send a token once to each rank. A gradient comes back by the
// kernel that the values did not go by.
struct TokenRoutes {
  std::optional<TokenRoute> forward;
  std::optional<TokenRoute> backward;
};
// Their kernels are those of `setting.performance`, which must outlive them.
TokenRoutes token_routes(const Collective& collective, const Group& group, const Setting& setting);

}  // namespace headroom
