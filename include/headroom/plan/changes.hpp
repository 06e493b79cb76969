// The changes that an engineer would try on a strategy, as values: for remedies (what would make it fit) and
// improvements (what would make it faster).
#pragma once

#include <vector>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// A change is the fields that it sets, in their order: recompute = full, recompute_layers = 2.
Request changed(const Request& request, const Edits& change);

// Changes that leave the devices as they are: of what is kept, of the microbatch, and of how the devices are divided.
std::vector<Edits> changes_on_same_devices(const Request& request);

// Changes that take more devices for a replica: twice the tensor- or pipeline-parallel size, and twice that, ...
std::vector<Edits> changes_to_more_devices(const Request& request);

}  // namespace headroom
