// The choice among strategies that predictions cannot tell apart.
//
// Of two strategies whose times are equal within noise (search/time_belief.hpp), the one predicted to be
// faster often is not. Among those equal to the fastest, a plan takes what engineers prefer: the least time
// once drawbacks have their price (search/drawbacks.hpp). What lies beyond the noise is ranked by time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/search/search.hpp"
#include "headroom/search/time_belief.hpp"

namespace headroom {

struct Ranking {
  std::vector<std::size_t> order;  // of the candidates, the chosen one first
  std::size_t fastest = 0;         // expected to take the least time
  std::vector<bool> equal;         // of each candidate: equal to the fastest within noise
  friend bool operator==(const Ranking&, const Ranking&) = default;
};

enum class RankedBy : std::uint8_t { preference, time };

// Ranks candidates of one request, of which there is at least one. The belief is that of their times, in the
// same order, and may hold more.
Ranking ranked(const Request& base, std::span<const Candidate> candidates, const TimeBelief& belief,
               RankedBy by = RankedBy::preference);

// Returns whether the predicted time of x exceeds that of y by no more than noise.
bool equal_within_noise(const Candidate& x, const Candidate& y, const SharedErrors& errors);

// Returns the candidate after single changes that the space admits, each to less time with the price of
// drawbacks, as long as its time stays equal to that of the candidate within noise. Each strategy on the way
// is legal, can be launched, and fits as well by what PyTorch's allocator reserves. Does nothing for
// Breadth::usual.
Candidate simplified(const Request& base, const Space& space, const Candidate& candidate,
                     const SharedErrors& errors);

template <>
inline constexpr std::array<Spelling<RankedBy>, 2> spellings<RankedBy>{{
    {RankedBy::preference, "preference"},
    {RankedBy::time, "time"},
}};

}  // namespace headroom
