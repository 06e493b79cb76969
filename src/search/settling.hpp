// What confirming plans and inverse questions share: the verdict of a candidate by what PyTorch's allocator reserves, and how much
// less its tensors should take at the next try.
#pragma once

#include "headroom/plan/plan.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// Searches of ever less memory for what the allocator reserves to stay within the device.
inline constexpr int most_settling_tries = 8;

// Returns the candidate with its peak, what its fullest device holds, and the verdict of that.
Candidate settled_candidate(const Request& base, Candidate candidate);

// Returns how much less tensors should take than those of a candidate that holds too much: half of what is too much, since other
// tensors may leave less between them, and at least 1% of the device.
Bytes excess(const Request& base, const Candidate& candidate);

}  // namespace headroom
