// Race of the host and the device through a pass. Each op takes time on both.
//
// The host launches op after op. It may be ahead of the device by any number of ops, until it waits for a
// number that the device makes, such as the tokens of each expert: then the race starts again. A part of a pass
// is a matrix over (max, +). Its entries are the times from when the host or the device is free before the part
// until the host or the device is free after it. Parts in a row multiply.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "headroom/core/units.hpp"

namespace headroom {

inline constexpr Seconds unrelated{-std::numeric_limits<double>::infinity()};

struct Race {
  Seconds host;                // from host to host
  Seconds both;                // from host to device: the time of a part that both begin together
  Seconds device;              // from device to device
  Seconds waited = unrelated;  // from device to host, if the host waits for the device
  friend bool operator==(const Race&, const Race&) = default;
};

constexpr bool waits(const Race& race) { return race.waited > unrelated; }

// Returns the race through an op of `kernels` equal kernels: the device runs one while the host launches the
// next.
constexpr Race race_of_op(Seconds host, Seconds device, double kernels) {
  const Seconds alone = std::min(host, device) / std::max(kernels, 1.0);
  return {.host = host, .both = std::max(host, device) + alone, .device = device};
}

// The host waits until the device is free.
inline constexpr Race wait_for_device{.host = {}, .both = {}, .device = {}, .waited = {}};

constexpr Race operator*(const Race& first, const Race& then) {
  return {.host = std::max(first.host + then.host, first.both + then.waited),
          .both = std::max(first.both + then.device, first.host + then.both),
          .device = std::max(first.device + then.device, first.waited + then.both),
          .waited = std::max(first.waited + then.host, first.device + then.waited)};
}

// Returns the race through `count` equal parts in a row.
constexpr Race in_a_row(std::int64_t count, Race part) {
  Race all;
  for (; count > 0; count /= 2) {
    if (count % 2 == 1) all = all * part;
    part = part * part;
  }
  return all;
}

}  // namespace headroom
