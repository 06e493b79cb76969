// What passes allocate and free on the ranks of a plan, ready for an allocator to serve (plan/allocator_replay.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "headroom/memory/pass_events.hpp"
#include "headroom/memory/units.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {

// Allocation of a block, or its release if `bytes` is negative.
struct BlockEvent {
  std::size_t tensor = 0;
  std::int64_t bytes = 0;
};

// MemoryEvents of passes through one layer, in bytes of blocks.
struct BlockEvents {
  std::vector<BlockEvent> forward;
  std::vector<BlockEvent> backward;
  std::vector<std::size_t> left;              // tensors that the forward pass leaves
  std::vector<std::size_t> weight_gradients;  // see PassEvents
  std::size_t tensors = 0;
  std::vector<TensorSource> sources;  // see PassEvents
};

// Layer of a virtual stage, or the embedding or output layer at an end of the model.
struct StageMember {
  std::size_t kind = 0;
  bool recomputed = false;
  bool rooted = false;      // in the root unit
  std::size_t first = 0;    // of its tensors, among those of the virtual stage
  std::int64_t layer = -1;  // from 0, along the model; -1: none of those that the pipeline divides
};

// Parameters of a kind of layer.
struct KindParameters {
  std::vector<double> of_ops;  // those that have parameters
  std::vector<int> ops;        // their indices in the kind's table
  double sum = 0;
};

// What the replays of a plan's ranks share.
struct ReplayedRanks {
  const Plan& plan;
  const ModelLayers& layers;
  PipelineOrder order;  // with no more microbatches than a replay needs
  std::vector<StagePlace> places;
  bool reduces = false;  // passes reduce gradients
  bool grows = false;    // passes make gradients that stay until the step
  bool gathers = false;  // passes gather weights
  ModelUnits units;
  // By kind, and of the output that a stage keeps, if it does: plain and recomputed.
  std::vector<std::pair<BlockEvents, BlockEvents>> events;
  std::vector<KindParameters> parameters;

  [[nodiscard]] const BlockEvents& events_of(const StageMember& member) const {
    const auto& [plain, recomputed] = events[member.kind];
    return member.recomputed ? recomputed : plain;
  }
  [[nodiscard]] double parameters_of(const StageMember& member) const { return parameters[member.kind].sum; }
};

// Keeps a reference to the plan. With Sources::listed, each tensor of a pass has its source.
ReplayedRanks replayed_ranks(const Plan& plan, Sources sources = Sources::none);

// Returns the members of a rank's virtual stages.
std::vector<std::vector<StageMember>> members_of(const ReplayedRanks& ranks, std::int64_t rank);

}  // namespace headroom
