// Recomputation by microbatch window [K22 appendix C]: a rank saves everything for as many passes as its
// memory allows, and only checkpoints for the others. The window moves: the backward pass of a fully saved
// pass makes room for the next forward pass. Late ranks have few passes in flight and often need no
// recomputation.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
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
    std::deque<bool>& alive = stored_[static_cast<std::size_t>(step.chunk)];
    if (step.pass == Pass::forward) {
      alive.push_back(free_ > 0);
      free_ -= alive.back() ? 1 : 0;
      return alive.back();
    }
    // Within a chunk, backward passes come in the order of the forward passes.
    EXPECTS(!alive.empty());
    const bool stored = alive.front();
    alive.pop_front();
    free_ += stored ? 1 : 0;
    return stored;
  }

  // Returns what decides the answers to come: which passes in flight are saved in full, chunk by chunk.
  [[nodiscard]] std::string state() const {
    std::string text;
    for (const std::deque<bool>& alive : stored_) {
      for (const bool stored : alive) text += stored ? '1' : '0';
      text += ' ';
    }
    return text;
  }

 private:
  std::int64_t free_;
  std::vector<std::deque<bool>> stored_;  // by chunk: of passes in flight, oldest first
};

// Finds when the steps of a rank repeat, and skips further whole repetitions.
class Repetition {
 public:
  // Expects a schedule that admits a window.
  explicit Repetition(const ScheduleShape& shape)
      : period_(group_size(shape) * shape.chunks),
        whole_groups_(shape.microbatches / group_size(shape) * period_) {}

  // Call after each backward pass. If the rank was in this state before, the steps since then repeat until the
  // forward passes of the last whole group have run. Skips all of these repetitions that fit.
  void skip(const StorageWindow& window, Progress& done) {
    constexpr std::size_t most_states = 4096;  // bounds memory; the search for a repetition then ends
    const bool is_steady = done.backwards % period_ == 0 && done.forwards < whole_groups_;
    if (!is_steady || skipped_ || seen_.size() == most_states) return;
    const auto [first, is_new] = seen_.try_emplace(window.state(), done.backwards);
    if (is_new) return;
    const std::int64_t cycle = done.backwards - first->second;
    const std::int64_t skipped = (whole_groups_ - done.forwards) / cycle * cycle;
    done.forwards += skipped;
    done.backwards += skipped;
    skipped_ = true;
  }

 private:
  std::int64_t period_;                       // passes of a whole group
  std::int64_t whole_groups_;                 // passes of all whole groups
  std::map<std::string, std::int64_t> seen_;  // by state: backward passes run by then
  bool skipped_ = false;
};

// Steps to visit. With a window, without_repetitions may skip steps if steps like them were visited: with the
// same passes in flight, and the same of these saved in full.
enum class Walk : std::uint8_t { every_step, without_repetitions };

// Calls visit(step, saved_in_full) for the steps of a rank, in order.
template <class Visit>
void visit_windowed_steps(const PipelineOrder& pipeline, std::int64_t rank, std::int64_t window, Walk walk,
                          Visit visit) {
  const ScheduleShape& shape = pipeline.shape();
  StorageWindow in_full(shape.chunks, window);
  const RankOrder order = pipeline.of(rank);
  const bool may_skip = walk == Walk::without_repetitions && window > 0;
  Repetition repetition(shape);
  for (Progress done; !finished(shape, order, done);) {
    const Step step = next_step(shape, order, done);
    visit(step, in_full.stores(step));
    count(shape, order, done, step);
    if (may_skip && step.pass == Pass::backward) repetition.skip(in_full, done);
  }
}

}  // namespace headroom
