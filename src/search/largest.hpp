// What inverse questions share: whether something fits at a value, and the largest at which it does.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/search/feasibility.hpp"
#include "headroom/search/find.hpp"

namespace headroom {

inline constexpr std::string_view finding = "trying";

// Whether something of the space fits where what the question varies has this value, within the time that it asks for.
// Nothing does once the watch stops.
inline bool fits_at(std::int64_t value, Request request, Space space, const Question& question,
                    const Watch& watch) {
  put(question.extreme, value, request, space);
  tell(watch, finding, value);
  Feasibility feasibility(request, watch);
  return question.within ? feasibility.fits_within(space, *question.within) : feasibility.fits(space);
}

// The largest multiple of `unit` from `from`, which is one, to `most` that holds, where all smaller ones do too; none
// if `from` does not.
template <class Holds>
std::optional<std::int64_t> largest(std::int64_t unit, std::int64_t from, std::int64_t most, Holds holds) {
  if (from > most || !holds(from)) return {};
  std::int64_t good = from / unit;
  std::int64_t bad = most / unit + 1;
  for (std::int64_t width = 1; good + width < bad; width *= 2) {
    if (!holds((good + width) * unit)) {
      bad = good + width;
      break;
    }
    good += width;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (holds(middle * unit) ? good : bad) = middle;
  }
  return good * unit;
}

}  // namespace headroom
