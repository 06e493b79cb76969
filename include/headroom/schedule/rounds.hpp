// Orders of passes that are written as rounds: a few moves in a row, repeated. Two chunks of a rank take
// turns in these schedules, in a way that no rule by counts of passes describes.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

// Kinds of passes. backward: gradients of inputs and weights; if weights have passes of their own, of inputs
// only.
enum class Pass : std::uint8_t { forward, backward, backward_weight };

// One pass of the next microbatch of a chunk.
struct RoundMove {
  Pass pass = Pass::forward;
  std::int64_t chunk = 0;
  bool whole = false;   // backward: includes weights, even if other moves have separate passes for them
  bool beside = false;  // a forward pass, or the backward pass after it, if the two overlap
  friend bool operator==(const RoundMove&, const RoundMove&) = default;
};

struct Round {
  std::int64_t times = 0;
  std::vector<RoundMove> moves;
  friend bool operator==(const Round&, const Round&) = default;
};

// Returns the rounds of a rank in ZB-V on `ranks` ranks [sail-sg/zero-bubble-pipeline-parallelism, and
// torch/distributed/pipelining/schedules.py, ScheduleZBVZeroBubble]. Fewer microbatches than 2 p - 1 run as
// the first of that many.
std::vector<Round> zero_bubble_v_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank);

// Returns the rounds of a rank in DualPipeV [torch/distributed/pipelining/schedules.py, ScheduleDualPipeV].
// DualPipe uses them too: its two halves of ranks do the same, each direction with half of the microbatches.
// A DualPipe rank is as far from the turn as the DualPipeV rank with its rounds [deepseek-ai/DualPipe,
// dualpipe.py, step]. Expects at least as many microbatches as stages: 2 `ranks`.
std::vector<Round> dualpipe_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank);

}  // namespace headroom
