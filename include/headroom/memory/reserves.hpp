// Non-torch memory of a run (hardware/system.hpp, Reserve).
#pragma once

#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

inline Bytes reserved(const Reserve& reserve, const Software& software, const Strategy& strategy) {
  if (reserve.workspace && software.memory.workspaces) return Bytes(0);
  if (reserve.name == "cuda_context" && software.memory.cuda_context) return *software.memory.cuda_context;
  const bool once = reserve.per == ReservePer::device;
  return static_cast<double>(once ? 1 : communicators(axis_sizes(strategy))) * reserve.bytes;
}

// Returns the reserves of every device of the system.
inline Bytes reserved(const System& system, const Software& software, const Strategy& strategy) {
  Bytes sum;
  for (const Reserve& reserve : system.reserves) sum += reserved(reserve, software, strategy);
  return sum;
}

// Returns the largest reserves of any strategy on any training stack.
inline Bytes most_reserved(const System& system) {
  Strategy strategy;
  for (const AxisField& axis : axis_fields) strategy.*axis.size = 2;
  return reserved(system, Software{}, strategy);
}

}  // namespace headroom
