// Times of the passes of a pipeline, and of its ranks once its schedule is replayed (replay.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/core/units.hpp"
#include "headroom/schedule/shape.hpp"

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

}  // namespace headroom
