// What one answer costs: composing the op table, a whole evaluation, and the program from start to answer.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/time/layer_cost.hpp"

namespace headroom {
namespace {

// K22's 175B run.
Request paper_request() {
  return {.model = read_model("gpt3-175b"),
          .system = read_system("dgx-a100-80g"),
          .software = read_software("megatron-2022"),
          .strategy = {.tensor_parallel = 8,
                       .pipeline_parallel = 8,
                       .virtual_pipeline = 3,
                       .sequence_parallel = true,
                       .recompute = {.policy = RecomputePolicy::selective},
                       .schedule = ScheduleKind::interleaved},
          .workload = {.global_batch = 64, .sequence = 2048}};
}

void compose_layer(benchmark::State& state) {
  for (auto _ : state) {
    const OpTable table = layer_ops(Architecture{});
    benchmark::DoNotOptimize(
        kept_bytes(stored_tensors(table, {.tensor = true}, {.ops = core_attention_ops(table)})));
  }
}
BENCHMARK(compose_layer);

void price_layer(benchmark::State& state) {
  const Request request = paper_request();
  const Setting setting =
      setting_of(request.model, request.strategy, request.workload, request.system.devices_per_node,
                 *request.system.performance, request.software);
  for (auto _ : state) benchmark::DoNotOptimize(layer_cost(request.model, request.strategy, setting));
}
BENCHMARK(price_layer)->Unit(benchmark::kMicrosecond);

// One estimate: memory of every rank, time and throughput, of the 1T model on p pipeline ranks with n microbatches.
void evaluate_1t(benchmark::State& state) {
  Request request = paper_request();
  request.model = read_model("gpt-1t");
  request.strategy.virtual_pipeline = 1;
  request.strategy.schedule = ScheduleKind::one_forward_one_backward;
  request.strategy.pipeline_parallel = state.range(0);
  request.workload.global_batch = state.range(1);
  for (auto _ : state) benchmark::DoNotOptimize(evaluate(request));
}
BENCHMARK(evaluate_1t)
    ->ArgNames({"p", "n"})
    ->ArgsProduct({{1, 8, 64}, {8, 64, 512}})
    ->Unit(benchmark::kMicrosecond);

// What following PyTorch's allocator adds to an evaluation: `over_evaluation`, the time of both over that of the
// evaluation alone, for the 175B model on 8 pipeline ranks with n microbatches.
void settle_175b(benchmark::State& state) {
  Request request = paper_request();
  request.workload.global_batch = state.range(0);
  const auto seconds = [](const auto& work) {
    const std::clock_t start = std::clock();
    benchmark::DoNotOptimize(work());
    return static_cast<double>(std::clock() - start);
  };
  double alone = 0;
  double with = 0;
  for (auto _ : state) {
    alone += seconds([&] { return evaluate(request); });
    with += seconds([&] { return settled(evaluate(request)); });
  }
  state.counters["over_evaluation"] = with / alone;
}
BENCHMARK(settle_175b)->ArgName("n")->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void improvements_175b(benchmark::State& state) {
  const Evaluation evaluation = evaluate(paper_request());
  for (auto _ : state) benchmark::DoNotOptimize(improvements(account(evaluation), 3));
}
BENCHMARK(improvements_175b)->Unit(benchmark::kMillisecond);

void remedies_175b(benchmark::State& state) {
  Request request = paper_request();
  request.strategy.recompute = {};
  request.strategy.sequence_parallel = false;
  for (auto _ : state) benchmark::DoNotOptimize(remedies(request, 3));
}
BENCHMARK(remedies_175b)->Unit(benchmark::kMillisecond);

// Starts the program, reads its files, answers, and exits; with or without looking for changes that would help.
void process_estimate(benchmark::State& state) {
  std::vector<const char*> arguments{HEADROOM_PROGRAM,
                                     "estimate",
                                     "gpt3-175b",
                                     "-t",
                                     "8",
                                     "-p",
                                     "8",
                                     "-m",
                                     "3",
                                     "-o",
                                     "/dev/null",
                                     "--global-batch",
                                     "64",
                                     "--recompute",
                                     "selective",
                                     "--sp"};
  if (state.range(0) == 0) arguments.push_back("--no-suggestions");
  arguments.push_back(nullptr);
  for (auto _ : state) {
    pid_t child = 0;
    int status = 0;
    const int failed = posix_spawn(&child, HEADROOM_PROGRAM, nullptr, nullptr,
                                   const_cast<char* const*>(arguments.data()), environ);
    if (failed != 0 || waitpid(child, &status, 0) != child || status != 0) {
      state.SkipWithError("the program did not answer");
      break;
    }
  }
}
BENCHMARK(process_estimate)
    ->ArgName("suggestions")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace headroom
