// Recomputation by microbatch window [K22 appendix C]: a rank saves everything for as many passes as its
// memory allows, and only checkpoints for the others. The window moves: the backward pass of a fully saved
// pass makes room for the next forward pass. Late ranks have few passes in flight and often need no
// recomputation.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "headroom/schedule/order.hpp"

namespace headroom {

// Decides, step by step in a rank's order, which passes are saved in full: each pass at whose forward step
// fewer than `passes` such passes are in flight. Passes through virtual stages count: m of them are one
// microbatch.
class StorageWindow {
 public:
  StorageWindow(std::int64_t chunks, std::int64_t passes)
      : free_(passes), stored_(passes > 0 ? static_cast<std::size_t>(chunks) : 0) {}

  // Returns whether the pass of a step is saved in full. A backward pass gets the answer of its forward pass.
  // Returns false for weight-gradient passes, which recompute nothing.
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
  std::vector<std::queue<bool>> stored_;  // by chunk: of passes in flight, oldest first
};

// Calls visit(step, saved_in_full) for every step of a rank, in order.
template <class Visit>
void visit_windowed_steps(const ScheduleShape& shape, std::int64_t rank, std::int64_t window, Visit visit) {
  StorageWindow in_full(shape.chunks, window);
  visit_steps(shape, rank, [&](const Step& step) { visit(step, in_full.stores(step)); });
}

}  // namespace headroom
