// Device memory that a run takes beside what the model needs (hardware/system.hpp, Reserve).
#pragma once

#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

inline Bytes reserved(const Reserve& reserve, const Strategy& strategy) {
  const bool once = reserve.per == ReservePer::device;
  return static_cast<double>(once ? 1 : communicators(axis_sizes(strategy))) * reserve.bytes;
}

// By every device of the system.
inline Bytes reserved(const System& system, const Strategy& strategy) {
  Bytes sum;
  for (const Reserve& reserve : system.reserves) sum += reserved(reserve, strategy);
  return sum;
}

// Of any strategy.
inline Bytes most_reserved(const System& system) {
  Strategy strategy;
  for (const auto& [axis, size] : axis_fields) strategy.*size = 2;
  return reserved(system, strategy);
}

}  // namespace headroom
