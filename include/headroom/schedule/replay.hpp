// Replaying a schedule with the times of every rank: when each pass starts and ends, how long a rank waits, and how
// long the pipeline takes. Exact: no formula for a bubble is assumed.
//
// A pass starts when its rank is free and its input has arrived. Its rank then sends the output on, which keeps the
// sender until the transfer ends (Megatron-LM's blocking point-to-point); the receiver goes on with what it has.
// The last stage turns from forward to backward without a transfer. A pass for weights follows its backward pass on the
// same rank, and nobody waits for it. Two passes beside each other start when both have their inputs, and end together: the
// collectives of either run beside the computation of the other, and show where they are longer, and where they are not by
// what they take from the other's kernels (CollectiveRates::overlap_loss).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {

// Of one microbatch through one virtual stage.
struct PassTimes {
  Seconds forward;
  Seconds recompute;        // recomputation before the backward pass, unless a window stored the pass in full
  Seconds backward;         // without recomputation; where weights have passes of their own, of inputs only
  Seconds backward_weight;  // of such a pass
  Seconds delayed_weight;  // of the backward pass, where weight gradients wait: what runs beside any exchange
  // What of each are collectives of experts. Another pass beside it can hide those of the forward and of the backward pass.
  Seconds forward_exchanges;
  Seconds recompute_exchanges;
  Seconds backward_exchanges;
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

constexpr Seconds total(const PassTimes& times) {
  return times.forward + times.recompute + times.backward + times.backward_weight;
}

struct ScheduleTimes {
  std::vector<PassTimes> stages;      // of the virtual stages, in the order of the model
  std::vector<Seconds> links;         // of a transfer between rank r and r + 1 mod p, either way; empty: none
  std::vector<std::int64_t> windows;  // by rank: passes stored in full (StorageWindow); empty: none
  double overlap_loss = 0;            // of the time of collectives beside another pass
  friend bool operator==(const ScheduleTimes&, const ScheduleTimes&) = default;
};

// One step of one rank. A forward pass has no recomputation: recompute_end == start. Without a transfer sent == end. Of two
// passes beside each other both last as long as the two take.
struct ReplayedStep {
  std::int64_t rank = 0;
  Step step;
  bool stored = false;  // in full, by the rank's window
  Seconds start;
  Seconds recompute_end;
  Seconds end;
  Seconds sent;
  friend bool operator==(const ReplayedStep&, const ReplayedStep&) = default;
};

// Where a rank's time goes. The parts add up to the makespan, but for rounding.
struct ReplayedRank {
  Seconds forward;
  Seconds recompute;
  Seconds backward;  // with passes for weights
  Seconds sending;
  Seconds hidden;  // collectives beside another pass: no part of the above
  Seconds idle;    // the bubble: waiting for input, or for the other ranks to finish
  Seconds span;    // where weights have passes of their own: from its first pass to the end of its last
  std::int64_t stored_forwards = 0;  // of n m: passes stored in full by the window
  friend bool operator==(const ReplayedRank&, const ReplayedRank&) = default;
};

// Time spent computing.
constexpr Seconds busy(const ReplayedRank& rank) { return rank.forward + rank.recompute + rank.backward; }

struct ReplayedSchedule {
  Seconds makespan;  // from the first pass until every rank is done
  std::vector<ReplayedRank> ranks;
  friend bool operator==(const ReplayedSchedule&, const ReplayedSchedule&) = default;
};

// How long a pass of a stage beside one of another hides collectives.
Seconds hidden_beside(const PassTimes& forward, const PassTimes& backward, double overlap_loss);

// Calls `visit`, if there is one, for every event: each rank's in order, and a pass after the one it waited for.
// Takes time proportional to the steps, 2 n m p to 3 n m p, and memory to the virtual stages and the transfers under
// way. A schedule that deadlocks is our bug.
ReplayedSchedule replay_schedule(const ScheduleShape& shape, const ScheduleTimes& times,
                                 const std::function<void(const ReplayedStep&)>& visit = {});

}  // namespace headroom
