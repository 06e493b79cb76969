// A caller's hold on long work. The caller knows clocks, signals and terminals; the work only asks and tells.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace headroom {

struct Watch {
  // Asked often, from several threads: whether the work must end with what it has. Once true, stays true.
  std::function<bool()> stops;
  // Told by the calling thread alone: the step that the work is at, such as "confirming plans", and how much of
  // it is done. `of` is 0 where that is not known.
  std::function<void(std::string_view step, std::int64_t done, std::int64_t of)> tells;
};

inline bool stops(const Watch& watch) { return watch.stops && watch.stops(); }

inline void tell(const Watch& watch, std::string_view step, std::int64_t done = 0, std::int64_t of = 0) {
  if (watch.tells) watch.tells(step, done, of);
}

}  // namespace headroom
