// Memory snapshots of plans, and what they say when they are read as a run's.
#include "headroom/answer/snapshot.hpp"

#include <string>

#include <doctest/doctest.h>

#include "headroom/answer/snapshot_use.hpp"
#include "headroom/core/error.hpp"
#include "headroom/interop/memory_snapshot_writer.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

Request llama(const char* software, const Strategy& strategy, std::int64_t batch) {
  const Transformer model = read_model("llama-3-8b");
  return {.model = model,
          .system = read_system("dgx-h100-80g"),
          .software = read_software(software),
          .strategy = strategy,
          .workload = {.global_batch = batch, .sequence = 4096}};
}
Request sharded() {
  return llama("torchtitan-2025", {.data_parallel = 8, .data_sharding = DataSharding::zero3}, 8);
}
Request piped() {
  return llama("megatron-core-2025",
               {.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2, .sequence_parallel = true},
               64);
}

SnapshotReply read_back(const Request& request) {
  const Plan plan = account(settled(evaluate(request)));
  std::string bytes;
  write_snapshot(planned_snapshot(plan).snapshot, [&](const std::string& part) { bytes += part; });
  return answer(SnapshotQuestion{
      .snapshot = parse_snapshot(bytes, "own.pickle"), .file = "own.pickle", .request = request});
}

}  // namespace

TEST_CASE("snapshot: a plan's own snapshot has the account's peak, and is explained whole") {
  for (const Request& request : {sharded(), piped()}) {
    const SnapshotReply reply = read_back(request);
    const AllocatorUse use = *account(*reply.evaluation).allocator;
    CHECK(reply.use.peak == use.allocated);
    CHECK(reply.use.reserved == use.reserved);
    CHECK(reply.use.failures == 0);
    CHECK(reply.use.devices == 1);
    REQUIRE(reply.match);
    CHECK(reply.match->matched == reply.use.peak);
    CHECK(reply.match->missing.empty());
    Bytes groups;
    for (const BlockGroup& group : reply.use.groups) groups += total(group);
    CHECK(groups == reply.use.peak);
    CHECK(reply.use.groups.front().life != BlockLife::unknown);
  }
}

TEST_CASE("snapshot: frames name op, layer and microbatch") {
  const PlannedSnapshot planned = planned_snapshot(account(settled(evaluate(piped()))));
  const MemorySnapshot& snapshot = planned.snapshot;
  CHECK(planned.all_microbatches == 32);
  CHECK(planned.microbatches < 32);
  bool found = false;
  for (const SnapshotEvent& event : snapshot.traces.at(0)) {
    if (event.action != SnapshotAction::alloc || snapshot.stacks[event.stack].size() != 3) continue;
    const auto& stack = snapshot.stacks[event.stack];
    found = found ||
            (snapshot.frames[stack[0]].name.find(", saved") != std::string::npos &&
             snapshot.frames[stack[1]].file == "layer" && snapshot.frames[stack[2]].file == "microbatch" &&
             snapshot.frames[stack[2]].name == "forward");
  }
  CHECK(found);
  for (const SnapshotFrame& frame : snapshot.frames) {
    CHECK(frame.name.find(';') == std::string::npos);       // parts frames of a flame graph
    CHECK(frame.name.find("_start") == std::string::npos);  // memory_viz leaves such frames out
  }
}

TEST_CASE("snapshot: refused with the reason where the allocator is not followed") {
  Request request = piped();
  request.software.schedules.clear();  // any schedule is legal
  request.strategy.schedule = ScheduleKind::zero_bubble_h1;
  request.strategy.data_parallel = 1;
  try {
    planned_snapshot(account(evaluate(request)));
    FAIL("not refused");
  } catch (const InputError& error) {
    CHECK(error.problems().front().where == "snapshot");
    CHECK(
        error.problems().front().rule.ends_with("because the schedule has separate weight-gradient passes"));
  }
  CHECK_THROWS_AS(planned_snapshot(account(settled(evaluate(piped()))), 2), InputError);
}

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

// Blocks of a run: 4 weights that stay, an activation, a temporary, and one that was freed before it is seen.
MemorySnapshot small_run() {
  MemorySnapshot snapshot;
  snapshot.frames = {{.name = "empty", .file = "/opt/torch/nn/init.py", .line = 1},
                     {.name = "__init__", .file = "/job/model/mlp.py", .line = 10},
                     {.name = "forward", .file = "/job/model/mlp.py", .line = 20}};
  snapshot.stacks = {{}, {0, 1}, {2}};
  SnapshotSegment segment{.address = 0, .size = 64 * mib, .blocks = {}};
  for (std::int64_t i = 0; i < 4; ++i) {
    segment.blocks.push_back({.address = 8 * i * mib,
                              .size = 8 * mib,
                              .requested = 8 * mib,
                              .state = SnapshotState::allocated,
                              .stack = 1});
  }
  segment.blocks.push_back({.address = 32 * mib, .size = 32 * mib});
  snapshot.segments = {segment};
  const auto event = [](SnapshotAction action, std::int64_t address, std::int64_t size) {
    return SnapshotEvent{.action = action, .address = address, .size = size, .stack = 2};
  };
  std::vector<SnapshotEvent> trace{event(SnapshotAction::free_requested, 32 * mib, 2 * mib),
                                   event(SnapshotAction::free_completed, 32 * mib, 2 * mib),
                                   event(SnapshotAction::alloc, 32 * mib, 16 * mib)};
  for (int i = 0; i < 20; ++i) {
    trace.push_back(event(SnapshotAction::alloc, 48 * mib, 4 * mib - 100));
    trace.push_back(event(SnapshotAction::free_requested, 48 * mib, 4 * mib - 100));
    trace.push_back(event(SnapshotAction::free_completed, 48 * mib, 4 * mib - 100));
  }
  trace.push_back(event(SnapshotAction::free_requested, 32 * mib, 16 * mib));
  trace.push_back(event(SnapshotAction::free_completed, 32 * mib, 16 * mib));
  snapshot.traces = {trace};
  return snapshot;
}

}  // namespace

TEST_CASE("snapshot: blocks of a run are told apart by size, place and life") {
  const SnapshotUse use = snapshot_use(small_run(), "run.pickle");
  CHECK(use.reserved == Bytes(64.0 * mib));
  CHECK(use.allocated == Bytes(32.0 * mib));
  CHECK(use.largest_free == Bytes(32.0 * mib));
  CHECK(use.peak == Bytes(52.0 * mib));
  CHECK(use.peak_event == 4);
  const std::vector<BlockGroup> expected{
      {.each = 8 * mib, .count = 4, .place = "model/mlp.py:10 __init__", .life = BlockLife::state},
      {.each = 16 * mib, .count = 1, .place = "model/mlp.py:20 forward", .life = BlockLife::activation},
      {.each = 4 * mib, .count = 1, .place = "model/mlp.py:20 forward", .life = BlockLife::temporary}};
  CHECK(use.groups == expected);
}

TEST_CASE("snapshot: without a trace, what it holds counts as the peak") {
  MemorySnapshot snapshot = small_run();
  snapshot.traces.clear();
  const SnapshotUse use = snapshot_use(snapshot, "run.pickle");
  CHECK(use.events == 0);
  CHECK(use.peak == use.allocated);
  REQUIRE(use.groups.size() == 1);
  CHECK(use.groups.front().life == BlockLife::unknown);
  snapshot.segments.clear();
  CHECK_THROWS_AS(snapshot_use(snapshot, "run.pickle"), InputError);
}

TEST_CASE("snapshot: buffers that hold a whole part, and moments of their own, are matched") {
  const Request one_block{.model = read_model("gpt2-small"),
                          .system = read_system("dgx-a100-80g"),
                          .software = read_software(
                              "megatron-deepspeed-2022"),  // its optimizer state is one block from the start
                          .strategy = {.data_parallel = 2, .data_sharding = DataSharding::zero1},
                          .workload = {.global_batch = 2, .sequence = 1024}};
  for (const Request& request : {piped(), one_block}) {
    const Plan plan = account(settled(evaluate(request)));
    const ModelState& state = plan.ranks[plan.allocator->rank].state;
    MemorySnapshot run;
    SnapshotSegment segment{.address = 0, .size = 0, .blocks = {}};
    const auto add = [&](double bytes) {
      const auto size = static_cast<std::int64_t>(bytes / 512) * 512;
      segment.blocks.push_back(
          {.address = segment.size, .size = size, .requested = size, .state = SnapshotState::allocated});
      segment.size += size;
    };
    add(state.weights.count());
    // A gradient buffer of the size of a state that is one block would be taken for it.
    if (state.gradients != state.optimizer) add(state.gradients.count());
    for (int i = 0; i < 3; ++i) add(state.optimizer.count() / 3);
    run.segments = {segment};
    const SnapshotReply reply =
        answer(SnapshotQuestion{.snapshot = run, .file = "run.pickle", .request = request});
    REQUIRE(reply.match);
    CHECK(reply.match->matched == reply.use.peak);
  }
}

}  // namespace headroom
