// The orders in which a pipeline can run its passes, by name, and what each asks of a strategy. What a rank runs
// next is in schedule/order.hpp; which of them a training stack has, Software says.
//
// gpipe: all forwards, then all backwards. 1f1b: PipeDream-flush. interleaved: Megatron's, over m chunks a rank.
// looped-bfs: GPipe over m chunks a rank, one chunk after the other [torch, ScheduleLoopedBFS; arXiv 2211.05953].
// Gradients of weights have passes of their own in
//   zero-bubble-h1, -h2: 1F1B with as much in flight, and with nearly twice as much [arXiv 2401.10241, section 2],
//   zero-bubble-2p: H2 with twice as much,
//   zero-bubble-v: two chunks a rank, whose stages go down the ranks and come back up [arXiv 2405.15362],
//   v-half, v-min: the same with half and a third of the memory, and with some bubble [the same],
//   dualpipe-v: the same, with forward passes of the one chunk beside backward passes of the other, and
//   dualpipe: two copies of the model, whose microbatches go through the ranks from either end
//             [arXiv 2412.19437, section 3.2.1; deepseek-ai/DualPipe].
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

// Whether some gradients of weights have passes of their own, which no other pass waits for.
constexpr bool has_weight_passes(ScheduleKind kind) {
  return kind >= ScheduleKind::zero_bubble_h1 && kind <= ScheduleKind::dualpipe;
}

// Whether stages go down the ranks and come back up, so that the first rank holds both ends of the model.
constexpr bool runs_in_v(ScheduleKind kind) {
  return kind >= ScheduleKind::zero_bubble_v && kind <= ScheduleKind::dualpipe_v;
}

// Whether passes of some chunk run beside passes of another, whose collectives their computation hides.
constexpr bool overlaps_passes(ScheduleKind kind) {
  return kind == ScheduleKind::dualpipe_v || kind == ScheduleKind::dualpipe;
}

// Whether passes repeat by a building block, whose lifespans bound what is in flight (schedule/building_block.hpp). Blocks are laid out on
// all ranks together, which takes long on more of them.
constexpr bool repeats_block(ScheduleKind kind) {
  return kind == ScheduleKind::v_half || kind == ScheduleKind::v_min;
}

inline constexpr std::int64_t most_block_ranks = 64;

// Copies of the model that pipeline ranks hold together.
constexpr std::int64_t model_copies(ScheduleKind kind) { return kind == ScheduleKind::dualpipe ? 2 : 1; }

// Whether a rank may store passes in full by a moving window (schedule/window.hpp): backward passes are whole, and come in the
// order of the forward passes.
constexpr bool admits_window(ScheduleKind kind) {
  return !has_weight_passes(kind) && kind != ScheduleKind::looped_bfs;
}

// Whether what is in flight stops growing with the microbatches; otherwise all forward passes come first.
constexpr bool has_steady_state(ScheduleKind kind) {
  return kind != ScheduleKind::gpipe && kind != ScheduleKind::looped_bfs;
}

// Whether microbatches go round the ranks, through chunk after chunk of them.
constexpr bool goes_round(ScheduleKind kind) {
  return kind == ScheduleKind::interleaved || kind == ScheduleKind::looped_bfs;
}

// Whether a rank may hold so many virtual stages of a copy.
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
// ZB-1p and ZB-2p are what the paper's own search finds in as much memory as 1F1B takes, and in twice as much: it runs forward
// passes until the first backward pass arrives or that memory is full, which it is first where backward passes take longer than
// forward ones or transfers take time [sail-sg/zero-bubble-pipeline-parallelism, scheduler/zb.py, manual_order]. They are run as
// H1, as PyTorch and DeepSeek call it too, and as 2p.
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
