// What torchtitan and torch.distributed.pipelining can say of a strategy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns PyTorch's name of a schedule, or nothing if it has none [torch/distributed/pipelining/schedules.py,
// get_schedule_class, which takes names of either case].
constexpr std::string_view pytorch_schedule(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::gpipe: return "GPipe";
    case ScheduleKind::one_forward_one_backward: return "1F1B";
    case ScheduleKind::interleaved: return "Interleaved1F1B";
    case ScheduleKind::looped_bfs: return "LoopedBFS";
    case ScheduleKind::zero_bubble_v: return "ZBVZeroBubble";
    case ScheduleKind::dualpipe_v: return "DualPipeV";
    case ScheduleKind::zero_bubble_h1:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_2p:
    case ScheduleKind::v_half:
    case ScheduleKind::v_min:
    case ScheduleKind::dualpipe: break;
  }
  return {};
}

// Returns n if checkpoints of every n-th layer of a rank are as many as the strategy's, which must be full
// recomputation of some layers. Returns nothing if no n makes it so many [torchtitan/distributed/
// activation_checkpoint.py, _apply_ac_to_transformer_block].
inline std::optional<std::int64_t> titan_checkpoint_step(const Transformer& model, const Strategy& strategy) {
  const std::int64_t layers = strategy.recompute.layers;
  const std::int64_t stages = strategy.pipeline_parallel * strategy.virtual_pipeline;
  if (layers < 1 || strategy.recompute.method == RecomputeMethod::uniform || strategy.virtual_pipeline != 1)
    return std::nullopt;
  if (stages < 1 || !strategy.stage_layers.empty() || model.layers % stages != 0) return std::nullopt;
  const std::int64_t of_rank = model.layers / stages;
  const std::int64_t every = std::max<std::int64_t>(of_rank / layers, 1);
  return of_rank / every == layers ? std::optional(every) : std::nullopt;
}

}  // namespace headroom
