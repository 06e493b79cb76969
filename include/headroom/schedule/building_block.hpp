// V-Half and V-Min [arXiv 2405.15362]: two chunks a rank in a V, and passes that repeat every six passes' time by a building
// block, when each pass of a microbatch starts on each rank. How long a block holds a microbatch is what is in flight: half and a
// third of 1F1B's. In time slots, as if all passes took as long, the blocks are laid out, passes for weights come where a
// rank would be idle, and passes of the warm-up and the cool-down move to earlier idle slots as long as no rank holds more than
// before [sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py]. What is left is an order of passes, which replay.hpp gives times.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/hardware/schedule_kind.hpp"
#include "headroom/schedule/rounds.hpp"

namespace headroom {

// Of v_half or v_min, on 2 to most_block_ranks ranks. From about as many microbatches as ranks on, each more repeats six passes of every rank.
std::vector<Round> building_block_rounds(ScheduleKind kind, std::int64_t ranks, std::int64_t microbatches,
                                         std::int64_t rank);

// The moves of every rank, laid out for all microbatches.
std::vector<std::vector<RoundMove>> building_block_moves(ScheduleKind kind, std::int64_t ranks,
                                                         std::int64_t microbatches);

}  // namespace headroom
