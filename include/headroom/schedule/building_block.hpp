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

// Returns the rounds of a rank for v_half or v_min, on 2 to most_block_ranks ranks. Once there are about as
// many microbatches as ranks, each further one repeats six passes of every rank.
std::vector<Round> building_block_rounds(ScheduleKind kind, std::int64_t ranks, std::int64_t microbatches,
                                         std::int64_t rank);

// Returns the moves of every rank, laid out for all microbatches.
std::vector<std::vector<RoundMove>> building_block_moves(ScheduleKind kind, std::int64_t ranks,
                                                         std::int64_t microbatches);

}  // namespace headroom
