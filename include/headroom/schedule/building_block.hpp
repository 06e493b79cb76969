// V-Half and V-Min [arXiv 2405.15362]: each rank has two chunks, in a V. A building block says when each pass
// of a microbatch starts on each rank, and repeats every six passes. The longer a block holds a microbatch,
// the more is in flight: half of 1F1B's in V-Half, a third in V-Min.
//
// Blocks are laid out in time slots, as if all passes took equally long. Weight-gradient passes fill slots in
// which a rank would be idle. Passes of warm-up and cool-down move to earlier idle slots as long as no rank
// holds more than before [sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py]. The result is
// an order of passes; replay.hpp gives them times.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/schedule/rounds.hpp"

namespace headroom {

// Returns the moves of every rank for v_half or v_min, on 2 to most_block_ranks ranks, laid out for all
// microbatches.
std::vector<std::vector<RoundMove>> building_block_moves(ScheduleKind kind, std::int64_t ranks,
                                                         std::int64_t microbatches);

// Rounds of the ranks of a pipeline. Once there are about as many microbatches as ranks, each further one
// repeats six passes of every rank, so that few microbatches are laid out for any number.
class BuildingBlocks {
 public:
  BuildingBlocks(ScheduleKind kind, std::int64_t ranks, std::int64_t microbatches);

  // Returns the number of microbatches from which building blocks are the same as for more of them.
  static constexpr std::int64_t all_alike_from(std::int64_t ranks) { return ranks + 7; }

  // Returns the rounds of a rank. Expects the number of microbatches that was laid out; if that is at least
  // all_alike_from(), any number from there on, or one less.
  [[nodiscard]] std::vector<Round> rounds(std::int64_t rank, std::int64_t microbatches) const;

 private:
  struct OfRank {
    std::vector<RoundMove> head;
    std::vector<RoundMove> period;  // repeated once for each further microbatch
    std::vector<RoundMove> tail;
  };
  std::int64_t without_period_ = 0;  // microbatches
  std::vector<OfRank> ranks_;
};

}  // namespace headroom
