// Goodput of a training run under failures: the fraction of its time that makes lasting progress.
//
// Failures are random with constant odds (exponential gaps), and each stops all GPUs. After a restart the run
// resumes from its last checkpoint; checkpoints pause the run too. Failures can interrupt work, checkpoints
// and restarts, and the expected time is known exactly [J. T. Daly, A higher order estimate of the optimum
// checkpoint interval for restart dumps, Future Generation Computer Systems 22 (2006) 303-312, eq. 20]:
//
//   T = M exp(R/M) (exp((x + C)/M) - 1) W/x
//
// for work W, work x between checkpoints, checkpoint time C, restart time R, and mean time M between
// failures. If no interval is given, x is Daly's estimate of the optimum (eq. 37), whose first term is
// Young's sqrt(2 C M) (1974).
//
// A failed GPU takes its node out until repaired. Spare nodes take the node's place; if more nodes are out
// than there are spares, the run waits. The number of failed nodes at a moment is Poisson distributed,
// whatever the spread of repair times (Palm's theorem). No node fails while the run waits, which the model
// ignores; waiting is therefore overestimated rather than underestimated.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/core/units.hpp"

namespace headroom {

struct Reliability {
  Seconds device_mtbf;  // mean time between failures that end the run, of one GPU and its share of all else
  Seconds checkpoint_time;
  std::optional<Seconds> checkpoint_interval;  // of work; if absent, the optimum
  Seconds restart_time;                        // from a failure until training resumes
  std::int64_t spares = 0;                     // spare GPUs, in whole nodes
  std::optional<Seconds> repair_time;  // if absent, a restart replaces the node and no spare is needed
  std::int64_t devices_per_node = 1;   // of the system
  friend bool operator==(const Reliability&, const Reliability&) = default;
};

struct Goodput {
  Seconds mtbf;                 // of the run
  Seconds checkpoint_interval;  // of work
  double running = 1;           // fraction of time in which enough nodes work
  double productive = 1;        // fraction of all time, waiting included, that makes lasting progress
  friend bool operator==(const Goodput&, const Goodput&) = default;
};

// Returns the goodput of a run on `devices` GPUs.
Goodput goodput(const Reliability& reliability, std::int64_t devices);

}  // namespace headroom
