// Pipeline schedules by name, and what each of them asks of a strategy. schedule/order.hpp defines the order
// of passes on a rank. Software lists the schedules that a training stack offers.
//
// gpipe: all forward passes, then all backward passes.
// 1f1b: PipeDream-flush.
// interleaved: Megatron's, over m virtual stages a rank.
// looped-bfs: GPipe over m virtual stages a rank, one after the other [torch, ScheduleLoopedBFS; arXiv
// 2211.05953].
//
// The other schedules give weight gradients passes of their own:
// zero-bubble-h1: 1F1B with as much in flight; zero-bubble-h2: with nearly twice as much [arXiv 2401.10241,
// section 2].
// zero-bubble-2p: H2 with twice as much in flight as 1F1B.
// zero-bubble-v: two virtual stages a rank; stages go down the ranks and come back up [arXiv 2405.15362].
// v-half, v-min: zero-bubble-v with a half and a third of its memory, and some bubble [arXiv 2405.15362].
// dualpipe-v: zero-bubble-v with forward passes of one virtual stage beside backward passes of the other.
// dualpipe: two copies of the model, whose microbatches enter the ranks from either end [dualpipe-v and
// dualpipe: arXiv 2412.19437, section 3.2.1; deepseek-ai/DualPipe].
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_forward_one_backward,
  interleaved,
  zero_bubble_h1,
  zero_bubble_h2,
  zero_bubble_2p,
  zero_bubble_v,
  v_half,
  v_min,
  dualpipe_v,
  dualpipe,
  looped_bfs
};

// Returns whether some weight gradients have passes of their own, which no other pass waits for.
constexpr bool has_weight_passes(ScheduleKind kind) {
  return kind >= ScheduleKind::zero_bubble_h1 && kind <= ScheduleKind::dualpipe;
}

// Returns whether stages go down the ranks and come back up, so that the first rank holds both ends of the
// model.
constexpr bool runs_in_v(ScheduleKind kind) {
  return kind >= ScheduleKind::zero_bubble_v && kind <= ScheduleKind::dualpipe_v;
}

// Returns whether passes of one virtual stage run beside passes of another, so that computation hides their
// collectives.
constexpr bool overlaps_passes(ScheduleKind kind) {
  return kind == ScheduleKind::dualpipe_v || kind == ScheduleKind::dualpipe;
}

// Returns whether passes repeat a building block, whose lifespans bound the microbatches in flight
// (schedule/building_block.hpp). A block is laid out on all ranks together, which is slow beyond
// most_block_ranks.
constexpr bool repeats_block(ScheduleKind kind) {
  return kind == ScheduleKind::v_half || kind == ScheduleKind::v_min;
}

inline constexpr std::int64_t most_block_ranks = 64;

// Returns how many copies of the model the pipeline ranks hold together.
constexpr std::int64_t model_copies(ScheduleKind kind) { return kind == ScheduleKind::dualpipe ? 2 : 1; }

// Returns whether a rank can save all activations of some passes in a moving window (schedule/window.hpp).
// Backward passes must be whole and follow the order of the forward passes.
constexpr bool admits_window(ScheduleKind kind) {
  return !has_weight_passes(kind) && kind != ScheduleKind::looped_bfs;
}

// Returns whether the microbatches in flight stop growing with the number of microbatches. Otherwise all
// forward passes come first.
constexpr bool has_steady_state(ScheduleKind kind) {
  return kind != ScheduleKind::gpipe && kind != ScheduleKind::looped_bfs;
}

// Returns whether microbatches go round the ranks, once for each virtual stage.
constexpr bool goes_round(ScheduleKind kind) {
  return kind == ScheduleKind::interleaved || kind == ScheduleKind::looped_bfs;
}

// Returns whether a rank may hold `virtual_pipeline` virtual stages of a copy of the model.
constexpr bool admits_virtual_pipeline(ScheduleKind kind, std::int64_t virtual_pipeline) {
  if (goes_round(kind)) return virtual_pipeline > 1;
  return virtual_pipeline == (runs_in_v(kind) ? 2 : 1);
}

template <>
inline constexpr std::array<Spelling<ScheduleKind>, 12> spellings<ScheduleKind>{{
    {ScheduleKind::gpipe, "gpipe"},
    {ScheduleKind::one_forward_one_backward, "1f1b"},
    {ScheduleKind::interleaved, "interleaved"},
    {ScheduleKind::zero_bubble_h1, "zero-bubble-h1"},
    {ScheduleKind::zero_bubble_h2, "zero-bubble-h2"},
    {ScheduleKind::zero_bubble_2p, "zero-bubble-2p"},
    {ScheduleKind::zero_bubble_v, "zero-bubble-v"},
    {ScheduleKind::v_half, "v-half"},
    {ScheduleKind::v_min, "v-min"},
    {ScheduleKind::dualpipe_v, "dualpipe-v"},
    {ScheduleKind::dualpipe, "dualpipe"},
    {ScheduleKind::looped_bfs, "looped-bfs"},
}};
// Other spellings. ZB-1p and ZB-2p are the schedules that the paper's search finds in the memory of 1F1B and
// in twice as much. The search runs forward passes until the first backward pass arrives or memory is full.
// Memory is full first if backward passes take longer than forward passes or transfers take time
// [sail-sg/zero-bubble-pipeline-parallelism, scheduler/zb.py, manual_order]. They run as zero-bubble-h1, as
// in PyTorch and DeepSeek, and as zero-bubble-2p.
template <>
inline constexpr std::array<Spelling<ScheduleKind>, 35> other_spellings<ScheduleKind>{{
    {ScheduleKind::zero_bubble_h1, "zero_bubble_h1"},
    {ScheduleKind::zero_bubble_h1, "zb-h1"},
    {ScheduleKind::zero_bubble_h1, "zb_h1"},
    {ScheduleKind::zero_bubble_h1, "ZB-H1"},
    {ScheduleKind::zero_bubble_h1, "zb1p"},
    {ScheduleKind::zero_bubble_h1, "zb-1p"},
    {ScheduleKind::zero_bubble_h1, "ZB-1p"},
    {ScheduleKind::zero_bubble_h1, "ZB1P"},
    {ScheduleKind::zero_bubble_h2, "zero_bubble_h2"},
    {ScheduleKind::zero_bubble_h2, "zb-h2"},
    {ScheduleKind::zero_bubble_h2, "zb_h2"},
    {ScheduleKind::zero_bubble_h2, "ZB-H2"},
    {ScheduleKind::zero_bubble_2p, "zb2p"},
    {ScheduleKind::zero_bubble_2p, "zb-2p"},
    {ScheduleKind::zero_bubble_2p, "ZB-2p"},
    {ScheduleKind::zero_bubble_2p, "ZB2P"},
    {ScheduleKind::zero_bubble_v, "zero_bubble_v"},
    {ScheduleKind::zero_bubble_v, "zb-v"},
    {ScheduleKind::zero_bubble_v, "zbv"},
    {ScheduleKind::zero_bubble_v, "ZBV"},
    {ScheduleKind::zero_bubble_v, "ZBVZeroBubble"},
    {ScheduleKind::v_half, "v_half"},
    {ScheduleKind::v_half, "vhalf"},
    {ScheduleKind::v_half, "V-Half"},
    {ScheduleKind::v_min, "v_min"},
    {ScheduleKind::v_min, "vmin"},
    {ScheduleKind::v_min, "V-Min"},
    {ScheduleKind::dualpipe_v, "dualpipev"},
    {ScheduleKind::dualpipe_v, "dualpipe_v"},
    {ScheduleKind::dualpipe_v, "DualPipeV"},
    {ScheduleKind::dualpipe, "DualPipe"},
    {ScheduleKind::looped_bfs, "looped_bfs"},
    {ScheduleKind::looped_bfs, "LoopedBFS"},
    {ScheduleKind::looped_bfs, "loopedbfs"},
    {ScheduleKind::looped_bfs, "breadth-first"},
}};

}  // namespace headroom
