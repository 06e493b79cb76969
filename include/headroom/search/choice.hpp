// The choice among strategies that predictions cannot tell apart.
//
// Of two strategies whose times are equal within noise (search/time_belief.hpp), the one predicted to be faster often is
// not. Among those equal to the fastest, a plan takes what engineers prefer: the least time once drawbacks have
// their price (search/drawbacks.hpp). What lies beyond the noise is ranked by time.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headroom/search/search.hpp"
#include "headroom/search/time_belief.hpp"

namespace headroom {

struct Chosen {
  std::size_t fastest = 0;  // expected to take the least time
  std::size_t first = 0;    // chosen
  std::vector<bool> equal;  // of each candidate: equal to the fastest within noise
  friend bool operator==(const Chosen&, const Chosen&) = default;
};

// Chooses among candidates of one request, of which there is at least one. The belief is that of their times,
// in the same order, and may hold more.
Chosen choice_among(const Request& base, std::span<const Candidate> candidates, const TimeBelief& belief);

// Returns the candidate after single changes that the space admits, each to less time with the price of drawbacks,
// as long as its time stays equal to that of the candidate within noise. Each strategy on the way is legal, can be
// launched, and fits as well by what PyTorch's allocator reserves. Does nothing for Breadth::usual.
Candidate simplified(const Request& base, const Space& space, const Candidate& candidate,
                     const SharedErrors& errors);

}  // namespace headroom
