// Device memory that a run takes beside what the model needs (hardware/system.hpp, Reserve).
#pragma once

#include "headroom/hardware/system.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// The groups of more than one rank that a device is in: of tensor, pipeline and data parallelism.
constexpr std::int64_t communicators(const Strategy& strategy) {
  const auto group = [](std::int64_t ranks) { return ranks > 1 ? 1 : 0; };
  return group(strategy.tensor_parallel) + group(strategy.pipeline_parallel) + group(strategy.data_parallel);
}

inline Bytes reserved(const Reserve& reserve, const Strategy& strategy) {
  const bool once = reserve.per == ReservePer::device;
  return static_cast<double>(once ? 1 : communicators(strategy)) * reserve.bytes;
}

// By every device of the system.
inline Bytes reserved(const System& system, const Strategy& strategy) {
  Bytes sum;
  for (const Reserve& reserve : system.reserves) sum += reserved(reserve, strategy);
  return sum;
}

// Of any strategy.
inline Bytes most_reserved(const System& system) {
  return reserved(system, {.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2});
}

}  // namespace headroom
