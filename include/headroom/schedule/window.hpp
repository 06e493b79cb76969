// Recomputation by microbatch window [K22 appendix C]: a rank keeps everything of as many passes as it has memory
// for, and only checkpoints of the others. The window moves: a backward pass through a stored one makes room for
// the next forward. Late ranks have few passes in flight and often need to recompute none.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "headroom/schedule/order.hpp"

namespace headroom {

// Decides, step by step in a rank's order, which passes are stored in full: those at whose forward fewer than
// `passes` such are alive. Passes through virtual stages are counted: m of them are one microbatch's worth.
class StorageWindow {
 public:
  StorageWindow(std::int64_t chunks, std::int64_t passes)
      : free_(passes), stored_(passes > 0 ? static_cast<std::size_t>(chunks) : 0) {}

  // Whether the step's pass is stored in full; a backward pass finds what its forward pass left. Nothing is
  // recomputed for weights.
  bool stores(const Step& step) {
    if (stored_.empty() || step.pass == Pass::backward_weight) return false;
    std::queue<bool>& alive = stored_[static_cast<std::size_t>(step.chunk)];
    if (step.pass == Pass::forward) {
      alive.push(free_ > 0);
      free_ -= alive.back() ? 1 : 0;
      return alive.back();
    }
    // Within a chunk, backward passes come in the order of the forward passes.
    EXPECTS(!alive.empty());
    const bool stored = alive.front();
    alive.pop();
    free_ += stored ? 1 : 0;
    return stored;
  }

 private:
  std::int64_t free_;
  std::vector<std::queue<bool>> stored_;  // by chunk: of the passes alive, oldest first
};

// Calls visit(Step, bool stored in full) for every step of a rank, in order.
template <class Visit>
void visit_windowed_steps(const ScheduleShape& shape, std::int64_t rank, std::int64_t window, Visit visit) {
  StorageWindow in_full(shape.chunks, window);
  visit_steps(shape, rank, [&](const Step& step) { visit(step, in_full.stores(step)); });
}

}  // namespace headroom
