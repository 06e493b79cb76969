// Widens a search beyond the usual values (Breadth::wide). The usual values of t, c, p, d and of the microbatch
// are searched in full; the others multiply a space a thousandfold and rarely win. They are reached step by
// step, from the best plans:
//
//   divisions  Where TP beyond a node or CP below 32k tokens may help, the divisions one step from a good one
//              (one size doubled, another halved) are searched in full, as long as they lead to better plans.
//   choices    The first three plans, and up to five others that may become faster than the first, take
//              whatever single change makes them faster, until none does: exchanges of CP, dispatchers, shard
//              groups, gathered weights that stay, single modules recomputed. The first three are also tried
//              with other numbers of stages, whose layers are placed by time.
//   margin     Marginal plans that are nearly as fast as the best take a change that fits with the margin.
//
// If no usual division has a plan that fits, all divisions are searched. The result depends neither on threads
// nor on shards, which are merged before.
#pragma once

#include "headroom/search/search.hpp"

namespace headroom {

// Largest part of a plan's time that a changed plan takes for the change to be worth making or naming. Smaller
// gains lie far within the errors of predictions (docs/validation.md).
inline constexpr double worth_a_change = 0.995;

// Returns the candidate with the fastest single change made, again and again, until no change that the space
// admits makes it faster by half a percent. Each strategy on the way is legal, can be launched, and fits as well
// as the candidate.
Candidate refined(const Request& base, const Space& space, Candidate candidate);

// Returns the same for a candidate whose reserved memory is known: each strategy on the way fits as well by what
// PyTorch's allocator reserves.
Candidate refined_and_settled(const Request& base, const Space& space, Candidate candidate);

// Adds what a wide search finds to the result of the usual one. Does nothing for Breadth::usual, nor to a result that
// is undecided; leaves it undecided where the watch stops it. Heeds the threads, the watch and the progress of the
// options.
void widen(SearchResult& result, const Request& base, const Space& space, const SearchOptions& options);

}  // namespace headroom
