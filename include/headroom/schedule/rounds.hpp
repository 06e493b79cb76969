// Orders of passes that are written down as rounds: a few moves in a row, so many times. Of the schedules in which two
// chunks of a rank take turns, which no rule that counts passes says.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

// backward: gradients of inputs and weights in one pass or, where weights have passes of their own, of inputs only.
enum class Pass : std::uint8_t { forward, backward, backward_weight };

// The next microbatch of a chunk in one pass.
struct RoundMove {
  Pass pass = Pass::forward;
  std::int64_t chunk = 0;
  bool whole = false;   // backward: weights too, though others have them in passes of their own
  bool beside = false;  // a forward pass and the backward pass after it, which run beside each other
  friend bool operator==(const RoundMove&, const RoundMove&) = default;
};

struct Round {
  std::int64_t times = 0;
  std::vector<RoundMove> moves;
  friend bool operator==(const Round&, const Round&) = default;
};

// ZB-V of so many ranks [sail-sg/zero-bubble-pipeline-parallelism, and torch/distributed/pipelining/schedules.py,
// ScheduleZBVZeroBubble]. Fewer microbatches than 2 p - 1 run as the first of so many.
std::vector<Round> zero_bubble_v_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank);

// DualPipeV [torch/distributed/pipelining/schedules.py, ScheduleDualPipeV]. DualPipe's ranks do the same in either half, each
// direction with half of the microbatches, so that a rank is as far from the turn as this one [deepseek-ai/DualPipe, dualpipe.py,
// step]. At least as many microbatches as there are stages: 2 ranks.
std::vector<Round> dualpipe_rounds(std::int64_t ranks, std::int64_t microbatches, std::int64_t rank);

}  // namespace headroom
