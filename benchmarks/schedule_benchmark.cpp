// Replaying a schedule, and timing it without a replay, as a function of pipeline ranks p and microbatches n.
#include <benchmark/benchmark.h>

#include "headroom/schedule/makespan.hpp"

namespace headroom {
namespace {

// Stages and links that differ, so that ranks wait for each other.
ScheduleTimes uneven_times(const ScheduleShape& shape) {
  ScheduleTimes times;
  for (std::int64_t stage = 0; stage < shape.ranks * shape.chunks; ++stage) {
    const double slower = 1 + 0.01 * static_cast<double>(stage % 7);
    times.stages.push_back({Seconds(1e-3 * slower), Seconds(1e-4 * slower), Seconds(2e-3 * slower)});
  }
  for (std::int64_t rank = 0; rank < shape.ranks; ++rank) {
    times.links.emplace_back(rank % 8 == 7 ? 4e-4 : 3e-4);
  }
  return times;
}

void run(benchmark::State& state, const ScheduleShape& shape, const ScheduleTimes& times) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(replay_schedule(shape, times).makespan);
  state.counters["steps"] =
      benchmark::Counter(static_cast<double>(2 * shape.ranks * shape.chunks * shape.microbatches),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void gpipe(benchmark::State& state) {
  const ScheduleShape shape{ScheduleKind::gpipe, state.range(0), 1, state.range(1)};
  run(state, shape, uneven_times(shape));
}

void one_forward_one_backward(benchmark::State& state) {
  const ScheduleShape shape{ScheduleKind::one_forward_one_backward, state.range(0), 1, state.range(1)};
  run(state, shape, uneven_times(shape));
}

void interleaved(benchmark::State& state) {
  const ScheduleShape shape{ScheduleKind::interleaved, state.range(0), 3, state.range(1)};
  run(state, shape, uneven_times(shape));
}

void windowed(benchmark::State& state) {
  const ScheduleShape shape{ScheduleKind::interleaved, state.range(0), 3, state.range(1)};
  ScheduleTimes times = uneven_times(shape);
  times.windows.assign(static_cast<std::size_t>(shape.ranks), shape.ranks);
  run(state, shape, times);
}

void interleaved_makespan(benchmark::State& state) {
  const ScheduleShape shape{ScheduleKind::interleaved, state.range(0), 3, state.range(1)};
  const ScheduleTimes times = uneven_times(shape);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(timed_schedule(shape, times).makespan);
}

const std::vector<std::vector<std::int64_t>> sizes{{8, 64}, {64, 512}};

BENCHMARK(gpipe)
    ->Name("replay/gpipe")
    ->ArgNames({"p", "n"})
    ->ArgsProduct(sizes)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(one_forward_one_backward)
    ->Name("replay/1f1b")
    ->ArgNames({"p", "n"})
    ->ArgsProduct(sizes)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(interleaved)
    ->Name("replay/interleaved_3")
    ->ArgNames({"p", "n"})
    ->ArgsProduct(sizes)
    ->Unit(benchmark::kMicrosecond);
// What does not grow with n: groups of microbatches that repeat.
BENCHMARK(interleaved_makespan)
    ->Name("makespan/interleaved_3")
    ->ArgNames({"p", "n"})
    ->ArgsProduct({{8, 16}, {32, 256, 2048, 16384}})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(windowed)
    ->Name("replay/window_of_p")
    ->ArgNames({"p", "n"})
    ->ArgsProduct(sizes)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace headroom
