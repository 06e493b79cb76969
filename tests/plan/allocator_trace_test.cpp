// The trace of an allocator against the account of its plan: the same peak, the same segments, and no block
// that is freed twice or lies over another.
#include "headroom/plan/allocator_trace.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/memory/caching_allocator.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "plan/replayed_requests.hpp"

namespace headroom {
namespace {

// Replays the events from the end back to the start: each block is there when it is freed, and none lies
// over another.
void check_order(const AllocatorTrace& trace) {
  std::map<std::int64_t, TracedBlock> alive;
  std::int64_t wrong = 0;
  for (const TracedSegment& segment : trace.segments) {
    std::int64_t end = segment.address;
    for (const TracedBlock& block : segment.blocks) {
      wrong += block.address < end || block.requested > block.bytes ? 1 : 0;
      end = block.address + block.bytes;
      alive[block.address] = block;
    }
    wrong += end > segment.address + segment.bytes ? 1 : 0;
  }
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->action == TracedAction::take_segment) continue;
    wrong += event->block.tensor < trace.tensors.size() ? 0 : 1;
    if (event->action == TracedAction::free) {
      const auto after = alive.lower_bound(event->block.address);
      wrong += after != alive.end() && after->first < event->block.address + event->block.bytes ? 1 : 0;
      alive[event->block.address] = event->block;
    } else {
      wrong += alive.erase(event->block.address) == 1 ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

AllocatorTrace trace_of(const Plan& plan, std::int64_t rank) {
  const auto traced = allocator_trace(plan, rank);
  REQUIRE(std::holds_alternative<AllocatorTrace>(traced));
  return std::get<AllocatorTrace>(traced);
}

std::string reason(const Request& request) {
  const auto traced = allocator_trace(account(evaluate(request)), 0);
  REQUIRE(std::holds_alternative<std::string_view>(traced));
  return std::string(std::get<std::string_view>(traced));
}

// Returns the most that tensors take at once, in bytes of blocks.
Bytes most_allocated(const AllocatorTrace& trace) {
  const auto bytes_of = [](const TracedBlock& block) {
    return CachingAllocator::block_bytes(Bytes(real(block.requested)));
  };
  std::int64_t now = 0;
  for (const TracedSegment& segment : trace.segments) {
    for (const TracedBlock& block : segment.blocks) now += bytes_of(block);
  }
  // From the end of the iteration back to its start.
  std::int64_t most = now;
  for (auto event = trace.events.rbegin(); event != trace.events.rend(); ++event) {
    if (event->action == TracedAction::allocate) now -= bytes_of(event->block);
    if (event->action == TracedAction::free) now += bytes_of(event->block);
    most = std::max(most, now);
  }
  return Bytes(real(most));
}

Bytes reserved(const AllocatorTrace& trace) {
  Bytes bytes;
  for (const TracedSegment& segment : trace.segments) bytes += Bytes(real(segment.bytes));
  return bytes;
}

}  // namespace

TEST_CASE("allocator trace: its peak and its segments are those of the account") {
  int traces = 0;
  int shortened = 0;
  CHECK(rc::check([&] {
    Request request = any_replayed_request();
    request.software.memory.expandable_segments = *rc::gen::arbitrary<bool>();
    if (!illegalities(request, request.strategy).empty()) return;
    const Plan plan = account(evaluate(request));
    const auto rank = *rc::gen::inRange<std::int64_t>(0, request.strategy.pipeline_parallel);
    const std::optional<AllocatorUse> use = allocator_use(plan, rank);
    RC_PRE(use.has_value());
    const AllocatorTrace trace = trace_of(plan, rank);
    RC_ASSERT(most_allocated(trace) == use->allocated);
    RC_ASSERT(reserved(trace) == use->reserved);
    check_order(trace);
    RC_ASSERT(trace.microbatches <= trace.all_microbatches);
    shortened += trace.microbatches < trace.all_microbatches ? 1 : 0;
    ++traces;
  }));
  CHECK(traces > 20);
  CHECK(shortened > 0);
}

TEST_CASE("allocator trace: tensors of passes know their op, value, layer and microbatch") {
  const Transformer model = read_model("llama-3-8b");
  const Request request{.model = model,
                        .system = read_system("dgx-h100-80g"),
                        .software = read_software("megatron-core-2025"),
                        .strategy = {.tensor_parallel = 2, .pipeline_parallel = 2, .sequence_parallel = true},
                        .workload = {.global_batch = 4, .sequence = 4096}};
  const AllocatorTrace trace = trace_of(account(evaluate(request)), 1);
  CHECK(trace.all_microbatches == 4);
  CHECK(trace.microbatches == 2);  // on the last rank each frees what it saved before the next
  std::int64_t least_layer = 1000;
  std::int64_t most_layer = 0;
  std::map<std::string, int> parts;
  for (const TracedTensor& tensor : trace.tensors) {
    ++parts[std::string(name_of(tensor.part))];
    if (tensor.part != BlockPart::pass) continue;
    CHECK(tensor.source.bytes > Bytes(0));
    CHECK(tensor.microbatch >= 0);
    CHECK((tensor.source.op != nowhere || tensor.source.value != nowhere));
    if (tensor.layer < 0) continue;
    least_layer = std::min(least_layer, tensor.layer);
    most_layer = std::max(most_layer, tensor.layer);
  }
  CHECK(least_layer == 16);
  CHECK(most_layer == 31);
  for (const char* const part : {"weights", "gradients", "optimizer state", "activation"})
    CHECK(parts[part] > 0);
}

TEST_CASE("allocator trace: says why there is none") {
  Request request{.model = read_model("gpt2-small"),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("megatron-core-2025"),
                  .strategy = {.pipeline_parallel = 2, .schedule = ScheduleKind::zero_bubble_h1},
                  .workload = {.global_batch = 8, .sequence = 128}};
  request.software.schedules.clear();
  CHECK(reason(request) == "the schedule has separate weight-gradient passes");
  request.strategy = {.recompute = {.policy = RecomputePolicy::full}, .schedule = ScheduleKind::gpipe};
  request.workload.global_batch = 16'384;
  CHECK(reason(request) == "the iteration has too many passes");
  request.strategy = {.micro_batch = 2'000'000};
  request.workload.global_batch = 2'000'000;
  CHECK(reason(request) == "the plan needs 100 times the memory of a GPU");
}

}  // namespace headroom
