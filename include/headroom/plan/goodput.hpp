// What failures cost a training run: the part of its time that makes progress that lasts.
//
// Failures come at random with the same odds at every moment (exponential gaps), and each ends what all devices do. The
// run goes back to its last checkpoint after a restart; checkpoints stop it too. Work, checkpoints and restarts are all
// interrupted alike, for which the expected time is known exactly [J. T. Daly, A higher order estimate of the optimum
// checkpoint interval for restart dumps, Future Generation Computer Systems 22 (2006) 303-312, eq. 20]:
//
//   T = M exp(R/M) (exp((x + C)/M) - 1) W/x
//
// for W of work, x of it between checkpoints of C, restarts of R, and a mean time M between failures. The interval that
// makes it least is, without one given, Daly's estimate (eq. 37), whose first term is Young's sqrt(2 C M) (1974).
//
// A failed device takes its node away until it is repaired. Spare nodes take its place; where more nodes are away than
// there are spares the run waits. Nodes away at a moment are Poisson distributed, whatever the spread of repair times
// (Palm's theorem); that none fails while the run waits is left out, so that waiting is rather over- than underestimated.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/core/units.hpp"

namespace headroom {

struct Reliability {
  Seconds
      device_mtbf;  // mean time between failures that end the run, of one device and its share of all else
  Seconds checkpoint_time;
  std::optional<Seconds> checkpoint_interval;  // of work; without it the optimum
  Seconds restart_time;                        // from a failure to training on
  std::int64_t spares = 0;                     // devices beside those of the run, in whole nodes
  std::optional<Seconds>
      repair_time;  // without it a node is replaced within the restart, and no spare is needed
  std::int64_t devices_per_node = 1;  // of the system
  friend bool operator==(const Reliability&, const Reliability&) = default;
};

struct Goodput {
  Seconds mtbf;                 // of the run
  Seconds checkpoint_interval;  // of work
  double running = 1;           // the part of the time that enough nodes are there
  double productive = 1;        // the part of all time that makes progress that lasts, waiting counted
  friend bool operator==(const Goodput&, const Goodput&) = default;
};

// Of a run on so many devices.
Goodput goodput(const Reliability& reliability, std::int64_t devices);

}  // namespace headroom
