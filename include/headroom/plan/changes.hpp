// Changes that an engineer would try on a strategy, as values. Remedies use them to make a strategy fit,
// improvements to make it faster.
#pragma once

#include <vector>

#include "headroom/parallel/edits.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns the request with a change made. A change is the fields that it sets, in order: recompute = full,
// recompute_layers = 2.
Request changed(const Request& request, const Edits& change);

// Returns changes that keep the number of GPUs: to what is saved, to the microbatch, and to the parallelism.
// Each leads from a strategy that a search tries by default to another such strategy. Recomputation windows
// are therefore left out; no launcher offers them.
std::vector<Edits> changes_on_same_devices(const Request& request);

// Returns the changes that keep gradients and moments of the optimizer in BF16, on releases whose recipes have
// them.
std::vector<Edits> changes_of_state(const Request& request);

// Returns changes that offload more, or less, to the host (parallel/offload.hpp). Offloading is slower than
// other changes, so these serve strategies that do not fit.
std::vector<Edits> changes_of_offloading(const Request& request);

// Returns whether a user who can launch the request can launch `strategy`. Gaps of the launcher and groups of
// an interleaved schedule are accepted only if the request itself has them or the stack runs such groups.
bool launchable(const Request& request, const Strategy& strategy);

// Returns whether a strategy can take the place of the request's: it is legal on the same number of GPUs, and
// launchable(). `known`: layers of the request's model on its stack, or null.
bool can_replace(const Request& request, const Strategy& strategy, KnownLayers* known = nullptr);

}  // namespace headroom
