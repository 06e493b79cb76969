#include "headroom/core/counts.hpp"

#include <algorithm>

#include "headroom/core/expects.hpp"

namespace headroom {

// Searches up to the square root only, because a batch may count billions.
std::vector<std::int64_t> divisors(std::int64_t whole) {
  EXPECTS(whole >= 1);
  std::vector<std::int64_t> result;
  for (std::int64_t low = 1; low <= whole / low; ++low) {
    if (whole % low != 0) continue;
    result.push_back(low);
    if (whole / low != low) result.push_back(whole / low);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace headroom
