// Shared by confirming plans and inverse questions: the verdict of a candidate by the memory that PyTorch's
// allocator reserves, and how much less its tensors should take in the next try.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "headroom/plan/plan.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

// Largest number of searches, with ever less memory for tensors, for reserved memory to fit the GPU.
inline constexpr int most_settling_tries = 16;

// Returns the candidate with its peak, the memory in use on its fullest GPU, and the resulting verdict.
Candidate settled_candidate(const Request& base, Candidate candidate);

// Returns the first of the candidates whose verdict, once settled, is at most this one. Looks at `most` of
// them, since following the allocator takes milliseconds.
std::optional<Candidate> first_settled(const Request& base, std::vector<Candidate> candidates,
                                       std::size_t most, Verdict verdict);

// Returns how much less memory tensors should take than those of a candidate that reserves too much: half of
// the excess, since other tensors may leave smaller gaps, at least 1% and at most 4% of the GPU.
Bytes excess(const Request& base, const Candidate& candidate);

}  // namespace headroom
