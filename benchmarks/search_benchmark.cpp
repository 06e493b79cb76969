// What a search costs: strategies a second over whole spaces on one core, and where an evaluation's time goes.
#include <benchmark/benchmark.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/search/evaluator.hpp"
#include "headroom/search/search.hpp"

namespace headroom {
namespace {

Request request_for(const char* model, std::int64_t batch) {
  Request request{.model = read_model(model),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  request.strategy.gradients = Dtype::half;
  return request;
}

void whole_space(benchmark::State& state, const char* model, std::int64_t devices) {
  const Request request = request_for(model, devices);
  std::int64_t evaluated = 0;
  for (auto _ : state) evaluated += search(request, {.devices = devices}).evaluated;
  state.counters["strategies"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(whole_space, 175b_on_64, "gpt3-175b", 64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 530b_on_2240, "mt-nlg-530b", 2240)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(whole_space, 1t_on_3072, "gpt-1t", 3072)->Unit(benchmark::kMillisecond);

// One dimension after another taken out of the same evaluation: enumerating, with memory, with time.
enum class Part { enumerate, memory, time, least_time };

void part_of_evaluation(benchmark::State& state, Part part, ScheduleKind schedule) {
  const Request request = request_for("mt-nlg-530b", 2240);
  const Space space{.devices = 2240, .schedules = {schedule}};
  Evaluator evaluator(request);
  std::int64_t strategies = 0;
  for (auto _ : state) {
    visit_layouts(
        request, space,
        [&](const Strategy& layout) {
          if (part != Part::enumerate) evaluator.set_layout(layout);
          Strategy strategy = layout;
          for (const Recomputation& recompute : recomputations(request, space, layout)) {
            strategy.recompute = recompute;
            ++strategies;
            if (part == Part::memory) benchmark::DoNotOptimize(evaluator.peak(strategy));
            if (part == Part::time) benchmark::DoNotOptimize(evaluator.iteration(strategy));
            if (part == Part::least_time) benchmark::DoNotOptimize(evaluator.least_iteration(strategy));
          }
          return true;
        },
        [](const std::string&) {});
  }
  state.counters["strategies"] =
      benchmark::Counter(static_cast<double>(strategies), benchmark::Counter::kIsRate);
}
constexpr ScheduleKind f1b1 = ScheduleKind::one_forward_one_backward;
constexpr ScheduleKind interleaved = ScheduleKind::interleaved;
BENCHMARK_CAPTURE(part_of_evaluation, 1f1b_enumerate, Part::enumerate, f1b1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(part_of_evaluation, 1f1b_memory, Part::memory, f1b1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(part_of_evaluation, 1f1b_time, Part::time, f1b1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(part_of_evaluation, interleaved_memory, Part::memory, interleaved)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(part_of_evaluation, interleaved_least_time, Part::least_time, interleaved)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headroom
