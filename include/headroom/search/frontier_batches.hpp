// Freed memory spent on a larger microbatch: the frontier of a layout at every size that its batch allows.
#pragma once

#include "headroom/search/frontier.hpp"

namespace headroom {

// The least time within a budget at one microbatch size.
struct BatchChoice {
  std::int64_t micro_batch = 1;
  FrontierPoint selective;               // K22's policy, for comparison; it may not fit
  std::optional<FrontierPoint> uniform;  // nothing where not even the least memory fits
  std::optional<StagedPoint> staged;
  friend bool operator==(const BatchChoice&, const BatchChoice&) = default;
};

// At every microbatch that is legal for the layout of the request, smallest first, up to the first for which nothing
// fits: a larger one keeps more. Throws InputError as Frontier does.
std::vector<BatchChoice> batch_choices(const Request& request, Bytes budget);

}  // namespace headroom
