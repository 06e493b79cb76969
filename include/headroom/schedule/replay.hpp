// Replays a schedule with the times of every rank: when each pass starts and ends, how long a rank waits, and
// how long the pipeline takes. The result is exact and assumes no formula for a bubble.
//
// A pass starts when its rank is free and its input has arrived. The rank then sends the output, which blocks
// the sender until the transfer ends (Megatron-LM's blocking point-to-point). The receiver goes on with what
// it has. The last stage turns from forward to backward without a transfer. A weight-gradient pass follows
// its backward pass on the same rank, and no pass waits for it.
//
// Two overlapping passes start when both have their inputs, and end together. The collectives of each overlap
// with the computation of the other. The part of a collective that is longer than this computation is
// exposed. A shorter collective still costs what it takes from the kernels of the other pass
// (exchange_loss() of time/collective.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {

// Times of one microbatch in one virtual stage.
struct PassTimes {
  Seconds forward;
  Seconds recompute;        // before the backward pass, unless a window saved the pass in full
  Seconds backward;         // without recomputation; inputs only, if weights have passes of their own
  Seconds backward_weight;  // a separate weight-gradient pass
  Seconds delayed_weight;   // part of `backward`: delayed weight gradients, which hide collectives of experts
  // Time that collectives of experts add to the passes above: less than they take if the host is slower than
  // the device. An overlapping pass can hide those of the forward and of the backward pass.
  Seconds forward_exchanges;
  Seconds recompute_exchanges;
  Seconds backward_exchanges;
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

constexpr Seconds total(const PassTimes& times) {
  return times.forward + times.recompute + times.backward + times.backward_weight;
}

struct ScheduleTimes {
  std::vector<PassTimes> stages;      // by virtual stage, in the order of the model
  std::vector<Seconds> links;         // transfer between ranks r and r + 1 mod p, either way; empty: none
  std::vector<std::int64_t> windows;  // by rank: passes saved in full (StorageWindow); empty: none
  double overlap_loss = 0;            // least share of an overlapped collective's time that is exposed
  friend bool operator==(const ScheduleTimes&, const ScheduleTimes&) = default;
};

// One step of one rank. For a forward pass, recompute_end == start. Without a transfer, sent == end. Two
// overlapping passes both last as long as the two take together.
struct ReplayedStep {
  std::int64_t rank = 0;
  Step step;
  bool stored = false;  // saved in full by the rank's window
  Seconds start;
  Seconds recompute_end;
  Seconds end;
  Seconds sent;
  friend bool operator==(const ReplayedStep&, const ReplayedStep&) = default;
};

// Time of a rank by activity. The parts add up to the makespan, except for rounding.
struct ReplayedRank {
  Seconds forward;
  Seconds recompute;
  Seconds backward;  // includes weight-gradient passes
  Seconds sending;
  Seconds hidden;                    // collectives hidden by another pass; not in the times above
  Seconds idle;                      // the bubble: waiting for input, or for the other ranks to finish
  Seconds span;                      // if weights have passes of their own: first pass to end of last
  std::int64_t stored_forwards = 0;  // number of passes, of n m, saved in full by the window
  friend bool operator==(const ReplayedRank&, const ReplayedRank&) = default;
};

// Returns the time that a rank spends computing.
constexpr Seconds busy(const ReplayedRank& rank) { return rank.forward + rank.recompute + rank.backward; }

struct ReplayedSchedule {
  Seconds makespan;  // from the first pass until every rank is done
  std::vector<ReplayedRank> ranks;
  friend bool operator==(const ReplayedSchedule&, const ReplayedSchedule&) = default;
};

// Returns the time of collectives that an overlapping forward and backward pass hide.
Seconds hidden_beside(const PassTimes& forward, const PassTimes& backward, double overlap_loss);

// Replays a schedule. Calls `visit`, if set, for every event: those of each rank in order, and a pass after
// the one that it waited for. Takes time proportional to the steps, 2 n m p to 3 n m p, and memory
// proportional to the virtual stages and the transfers under way. A schedule that deadlocks is a bug of ours.
ReplayedSchedule replay_schedule(const PipelineOrder& order, const ScheduleTimes& times,
                                 const std::function<void(const ReplayedStep&)>& visit = {});

// Returns what replay_schedule() does, except for the rounding of sums, in time that hardly grows with the
// microbatches. Passes go in periods: groups of microbatches, or turns of a round. Every start is a maximum of
// sums of earlier times. Once a period has moved all clocks and all inputs under way on by the same time, and
// ranks wait for the same inputs as before, each later period therefore does the same until the last groups
// begin. Windows of full storage repeat differently on each rank; with them, every step is replayed.
ReplayedSchedule replay_periods(const PipelineOrder& order, const ScheduleTimes& times);

}  // namespace headroom
