// What launching kernels takes of the host's time. The host goes through a pass op by op and does not wait for the device; which of
// the two is longer decides how long a pass takes (pass_time in time/stage_time.hpp).
//
//   eager       an operation takes HostRates::operation; each kernel more that it launches, HostRates::launch
//   compiled    a kernel takes HostRates::launch
//   blocking    each takes HostRates::blocking_operation on top
//   a graph     all that it replays is one operation, and nothing where the whole iteration is one graph
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

// Whether there is anything that the host launches in an iteration.
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

// Rounded to a multiple of a picosecond or so, so that sums of host times are the same in any order.
inline Seconds host_time(double operations, double launches, const LaunchTimes& each) {
  constexpr int bits = 40;
  const Seconds sum = operations * each.operation + launches * each.launch;
  return Seconds(std::ldexp(std::round(std::ldexp(sum.count(), bits)), -bits));
}

}  // namespace headroom
