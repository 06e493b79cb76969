// What a rank holds from one iteration to the next, as its allocator serves it: weights, gradients, the
// optimizer state and buffers of the training stack (plan/allocator_replay.hpp).
#pragma once

#include <vector>

#include "plan/allocation_log.hpp"
#include "plan/replayed_ranks.hpp"

namespace headroom {

class ReplayedState {
 public:
  // Keeps references to all that it is given.
  ReplayedState(const ReplayedRanks& of, const RankMemory& memory,
                const std::vector<std::vector<StageMember>>& chunks, LoggedAllocator& allocator);

  // Returns the parameters of the rank's members.
  [[nodiscard]] double parameters() const { return all_parameters_; }

  // Allocates what exists before the first iteration.
  void allocate();
  // Takes the optimizer's step, which makes the optimizer state if it is the first.
  void step(bool first);

 private:
  void allocate_by_op(Bytes bytes, BlockPart part);
  void allocate_first_state();
  void widen_state();
  [[nodiscard]] Bytes flat_gradient() const;
  [[nodiscard]] FlatGradients flat_gradients() const;
  [[nodiscard]] Bytes resident_gradients() const;
  CachingAllocator::Block allocate_whole(Bytes bytes, BlockPart part);

  const ReplayedRanks& of_;
  const RankMemory& memory_;
  const std::vector<std::vector<StageMember>>& chunks_;
  LoggedAllocator& allocator_;
  double all_parameters_ = 0;
};

}  // namespace headroom
