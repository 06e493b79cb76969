// Host time of launching kernels. The host goes through a pass op by op without waiting for the device. The
// longer of the two decides how long a pass takes (pass_time in time/stage_time.hpp).
//
//   eager       HostRates::operation for an operation, HostRates::launch for each further kernel of it
//   compiled    HostRates::launch for a kernel
//   blocking    HostRates::blocking_operation more for each of these
//   graph       one operation for all that a graph replays; nothing if the whole iteration is one graph
#pragma once

#include <cmath>

#include "headroom/hardware/rates.hpp"
#include "headroom/hardware/software.hpp"

namespace headroom {

struct LaunchTimes {
  Seconds operation;
  Seconds launch;
  friend bool operator==(const LaunchTimes&, const LaunchTimes&) = default;
};

// Returns whether the host launches any operations in an iteration.
inline bool launches_operations(const Software& software) {
  return software.cuda_graphs != CudaGraphs::full_iteration;
}

inline LaunchTimes launch_times(const HostRates& rates, const Software& software) {
  if (!launches_operations(software)) return {};
  const Seconds blocking = software.blocking_launches ? rates.blocking_operation.value : Seconds(0);
  const Seconds launch = rates.launch.value + blocking;
  if (software.launches == Launches::compiled) return {launch, launch};
  return {rates.operation.value + blocking, launch};
}

// Returns host time, rounded to a multiple of about a picosecond, so that sums do not depend on their order.
inline Seconds host_time(double operations, double launches, const LaunchTimes& each) {
  constexpr int bits = 40;
  const Seconds sum = operations * each.operation + launches * each.launch;
  return Seconds(std::ldexp(std::round(std::ldexp(sum.count(), bits)), -bits));
}

}  // namespace headroom
