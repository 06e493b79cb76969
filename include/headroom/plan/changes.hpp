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
// Each leads from a strategy that a search tries by default to another one: windows of microbatches, which no launcher
// offers, are not among them.
std::vector<Edits> changes_on_same_devices(const Request& request);

// Changes that leave more, or less, to the host (parallel/offload.hpp): slower than others, and so for what does not fit.
std::vector<Edits> changes_of_offloading(const Request& request);

// Whether who launches the request can launch that: its stages hold as many layers each, or the stack lays others, or
// the request itself does.
bool launchable(const Request& request, const Strategy& strategy);

}  // namespace headroom
