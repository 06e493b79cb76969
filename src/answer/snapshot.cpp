#include "headroom/answer/snapshot.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"

namespace headroom {
namespace {

// Where blocks begin: an address as the CUDA driver gives them. The traces of three streams end below 2^53,
// so that JavaScript counts them exactly.
constexpr std::int64_t first_address = 0x7f0000000000;

// Names what the blocks of a trace hold.
class TensorFrames {
 public:
  TensorFrames(const AllocatorTrace& trace, MemorySnapshot& snapshot) : trace_(trace), snapshot_(snapshot) {}

  // Adds a stack for each tensor of the trace, in order.
  void add_stacks() {
    snapshot_.stacks.reserve(trace_.tensors.size() + 1);
    for (const TracedTensor& tensor : trace_.tensors) {
      std::vector<std::uint32_t> stack{number_of(tensor_frame(tensor))};
      if (tensor.kind >= 0) stack.push_back(number_of(layer_frame(tensor)));
      stack.push_back(number_of(pass_frame(tensor)));
      snapshot_.stacks.push_back(std::move(stack));
    }
  }

 private:
  [[nodiscard]] const LayerKind& kind_of(const TracedTensor& tensor) const {
    return trace_.layers.tables->kinds[index(tensor.kind)];
  }

  [[nodiscard]] SnapshotFrame tensor_frame(const TracedTensor& tensor) const {
    const TensorSource& source = tensor.source;
    const bool of_pass = tensor.part == BlockPart::pass;
    std::string name(of_pass ? name_of(source.use) : name_of(tensor.part));
    if (of_pass && source.value != nowhere)
      name = std::string(kind_of(tensor).ops[source.value].name) + ", " + name;
    if (tensor.kind < 0 || source.op == nowhere) return {.name = name, .file = of_pass ? "input" : "buffer"};
    return {.name = name,
            .file = std::string(kind_of(tensor).ops.ops()[index(source.op)].name),
            .line = source.op + 1};
  }
  [[nodiscard]] SnapshotFrame layer_frame(const TracedTensor& tensor) const {
    if (tensor.layer < 0) return {.name = kind_of(tensor).name, .file = "model"};
    return {.name = kind_of(tensor).name, .file = "layer", .line = tensor.layer};
  }
  [[nodiscard]] static SnapshotFrame pass_frame(const TracedTensor& tensor) {
    if (tensor.microbatch < 0) return {.name = "between passes", .file = "iteration"};
    return {.name = tensor.pass == Pass::forward ? "forward" : "backward",
            .file = "microbatch",
            .line = tensor.microbatch + 1};
  }

  std::uint32_t number_of(SnapshotFrame frame) {
    const auto [place, is_new] =
        numbers_.try_emplace(std::move(frame), static_cast<std::uint32_t>(snapshot_.frames.size()));
    if (is_new) snapshot_.frames.push_back(place->first);
    return place->second;
  }

  const AllocatorTrace& trace_;
  MemorySnapshot& snapshot_;
  std::map<SnapshotFrame, std::uint32_t> numbers_;
};

SnapshotSegment segment_of(const TracedSegment& segment, bool expandable) {
  SnapshotSegment result{.address = first_address + segment.address,
                         .size = segment.bytes,
                         .stream = segment.stream,
                         .small = segment.small,
                         .expandable = expandable,
                         .blocks = {}};
  std::int64_t end = result.address;
  const auto fill_to = [&](std::int64_t address) {
    if (address > end) result.blocks.push_back({.address = end, .size = address - end});
  };
  for (const TracedBlock& block : segment.blocks) {
    fill_to(first_address + block.address);
    result.blocks.push_back({.address = first_address + block.address,
                             .size = block.bytes,
                             .requested = block.requested,
                             .state = SnapshotState::allocated,
                             .stack = block.tensor + 1});
    end = first_address + block.address + block.bytes;
  }
  fill_to(result.address + result.size);
  return result;
}

void add_event(const TracedEvent& event, bool expandable, std::vector<SnapshotEvent>& to) {
  SnapshotEvent added{.address = first_address + event.block.address,
                      .size = event.block.requested,
                      .stream = event.stream,
                      .time_us = std::ssize(to),
                      .stack = event.block.tensor + 1};
  switch (event.action) {
    case TracedAction::allocate:
      added.action = SnapshotAction::alloc;
      to.push_back(added);
      return;
    case TracedAction::free:
      added.action = SnapshotAction::free_requested;
      to.push_back(added);
      added.action = SnapshotAction::free_completed;
      ++added.time_us;
      to.push_back(added);
      return;
    case TracedAction::take_segment:
      added.action = expandable ? SnapshotAction::segment_map : SnapshotAction::segment_alloc;
      added.size = event.block.bytes;
      added.stack = 0;
      to.push_back(added);
      return;
  }
}

}  // namespace

MemorySnapshot snapshot_of(const AllocatorTrace& trace) {
  MemorySnapshot snapshot;
  TensorFrames(trace, snapshot).add_stacks();
  for (const TracedSegment& segment : trace.segments)
    snapshot.segments.push_back(segment_of(segment, trace.expandable));
  std::vector<SnapshotEvent>& events = snapshot.traces.emplace_back();
  for (const TracedEvent& event : trace.events) add_event(event, trace.expandable, events);
  snapshot.settings = {.configuration = trace.expandable ? "expandable_segments:True" : "",
                       .expandable = trace.expandable};
  return snapshot;
}

PlannedSnapshot planned_snapshot(const Plan& plan, std::optional<std::int64_t> asked) {
  if (asked && (*asked < 0 || *asked >= std::ssize(plan.ranks))) {
    throw InputError("pipeline_rank", "must be below the PP size " + std::to_string(plan.ranks.size()) +
                                          ", not " + std::to_string(*asked));
  }
  const std::size_t rank = asked ? index(*asked) : plan.allocator ? plan.allocator->rank : plan.peak_rank;
  const std::variant<AllocatorTrace, std::string_view> traced = allocator_trace(plan, std::int64_t(rank));
  if (const auto* const reason = std::get_if<std::string_view>(&traced)) {
    throw InputError("snapshot",
                     "not available: Headroom does not model PyTorch's allocator for this plan, because " +
                         std::string(*reason));
  }
  const auto& trace = std::get<AllocatorTrace>(traced);
  return {.rank = rank,
          .snapshot = snapshot_of(trace),
          .microbatches = trace.microbatches,
          .all_microbatches = trace.all_microbatches};
}

}  // namespace headroom
