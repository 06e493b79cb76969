// Larger microbatches in the memory that recomputation frees: the frontier of a layout at every microbatch
// size that its batch allows.
#pragma once

#include "headroom/search/frontier.hpp"

namespace headroom {

// Least time within a budget at one microbatch size.
struct BatchChoice {
  std::int64_t micro_batch = 1;
  FrontierPoint selective;               // policy of Korthikanti et al. [K22], for comparison; it may not fit
  std::optional<FrontierPoint> uniform;  // empty if even the least memory does not fit
  std::optional<StagedPoint> staged;
  friend bool operator==(const BatchChoice&, const BatchChoice&) = default;
};

// Returns a choice for every microbatch size that is legal for the layout of the request, smallest first, up
// to the first size at which nothing fits (larger ones save more). Fewer if the watch stops it. Throws
// InputError as Frontier does.
std::vector<BatchChoice> batch_choices(const Request& request, Bytes budget, const Watch& watch = {});

}  // namespace headroom
