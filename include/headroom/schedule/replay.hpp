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

#include <functional>

#include "headroom/schedule/order.hpp"
#include "headroom/schedule/times.hpp"

namespace headroom {

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
