// What PyTorch's caching allocator of a rank does in one iteration: each tensor that is allocated and
// freed, at its address, and the segments that hold them. The replay is that of plan/allocator_use.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/memory/pass_events.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/schedule/order.hpp"

namespace headroom {

// Use of a block. pass: a tensor of a pass, described by TracedTensor::source. output: a sent pipeline output
// that the stage keeps.
enum class BlockPart : std::uint8_t {
  weights,
  gradients,
  optimizer,
  workspaces,
  dummy_gradients,
  buckets,
  kept_logits,
  flat_gradients,
  widened_state,
  gathered_weights,
  unit_gradients,
  tied_gradient,
  output,
  pass
};

// A tensor, by ids into AllocatorTrace::layers. -1 stands for none.
struct TracedTensor {
  BlockPart part = BlockPart::pass;
  std::int64_t kind = -1;
  std::int64_t layer = -1;  // from 0, along the model
  TensorSource source;      // op, value, use and requested bytes
  Pass pass = Pass::forward;
  std::int64_t microbatch = -1;
  friend bool operator==(const TracedTensor&, const TracedTensor&) = default;
};

struct TracedBlock {
  std::int64_t address = 0;
  std::int64_t bytes = 0;      // of the block
  std::int64_t requested = 0;  // by the tensor
  std::uint32_t tensor = 0;    // index into AllocatorTrace::tensors
  friend bool operator==(const TracedBlock&, const TracedBlock&) = default;
};

enum class TracedAction : std::uint8_t { take_segment, allocate, free };

// take_segment: `block` is the segment, or what an expandable one grows by, and has no tensor.
struct TracedEvent {
  TracedAction action = TracedAction::allocate;
  int stream = 0;
  TracedBlock block;
  friend bool operator==(const TracedEvent&, const TracedEvent&) = default;
};

struct TracedSegment {
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  int stream = 0;
  bool small = false;               // of blocks of up to 1 MiB
  std::vector<TracedBlock> blocks;  // allocated when the iteration ends, by address
  friend bool operator==(const TracedSegment&, const TracedSegment&) = default;
};

struct AllocatorTrace {
  PlanLayers layers;
  bool expandable = false;  // one growing segment for each pool of each stream
  std::vector<TracedTensor> tensors;
  std::vector<TracedEvent> events;      // of one iteration, after the first two
  std::vector<TracedSegment> segments;  // at its end, by address
  std::int64_t microbatches = 0;        // that the events show
  std::int64_t all_microbatches = 0;    // of the iteration; the others repeat what is shown
};

// Largest number of events in a trace: 90 MB in a snapshot.
inline constexpr std::size_t most_traced_events = 1'000'000;

// Returns the trace of a pipeline rank, as the stack sets its allocator. Returns why there is none where
// allocator_use() knows nothing, or where the trace would have too many events.
std::variant<AllocatorTrace, std::string_view> allocator_trace(const Plan& plan, std::int64_t rank);

template <>
inline constexpr std::array<Spelling<BlockPart>, 14> spellings<BlockPart>{{
    {BlockPart::weights, "weights"},
    {BlockPart::gradients, "gradients"},
    {BlockPart::optimizer, "optimizer state"},
    {BlockPart::workspaces, "GEMM workspaces"},
    {BlockPart::dummy_gradients, "dummy weight gradients"},
    {BlockPart::buckets, "buckets"},
    {BlockPart::kept_logits, "kept logits"},
    {BlockPart::widened_state, "optimizer state in FP32"},
    {BlockPart::flat_gradients, "flat gradients"},
    {BlockPart::gathered_weights, "gathered weights"},
    {BlockPart::unit_gradients, "gradients being reduced"},
    {BlockPart::tied_gradient, "gradient of tied weights"},
    {BlockPart::output, "pipeline output"},
    {BlockPart::pass, "activation"},
}};

}  // namespace headroom
