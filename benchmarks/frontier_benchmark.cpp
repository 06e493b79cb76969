// What the recomputation frontier costs: the sets of a layer, the mixes of a stage, and all of a layout.
#include <benchmark/benchmark.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/search/frontier.hpp"

namespace headroom {
namespace {

Request request_for(const char* model, std::int64_t p, std::int64_t m, std::int64_t b, std::int64_t batch) {
  Request request{.model = read_model(model),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022"),
                  .strategy = {.tensor_parallel = 8,
                               .pipeline_parallel = p,
                               .virtual_pipeline = m,
                               .micro_batch = b,
                               .sequence_parallel = true}};
  if (m > 1) request.strategy.schedule = ScheduleKind::interleaved;
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

void layer_sets_175b(benchmark::State& state) {
  const Request request = request_for("gpt3-175b", 8, 3, 1, 64);
  const Setting setting =
      setting_of(request.model, request.strategy, request.workload, request.system.devices_per_node,
                 *request.system.performance, request.software);
  const OpTable table = layer_ops(request.model.architecture);
  const PricedTable prices = priced(table_work(table, setting), setting);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        layer_front(LayerSets(table, prices, setting.sharding, setting.letters, request.detail)));
  }
}
BENCHMARK(layer_sets_175b)->Unit(benchmark::kMillisecond);

// K22 table 3.
void frontier_of(benchmark::State& state, const Request& request) {
  for (auto _ : state) {
    const Frontier frontier(request);
    benchmark::DoNotOptimize(frontier.uniform());
    benchmark::DoNotOptimize(frontier.staged(request.system.memory));
  }
}
void frontier_22b(benchmark::State& state) { frontier_of(state, request_for("gpt-22b", 1, 1, 4, 4)); }
void frontier_175b(benchmark::State& state) { frontier_of(state, request_for("gpt3-175b", 8, 3, 1, 64)); }
void frontier_530b(benchmark::State& state) { frontier_of(state, request_for("mt-nlg-530b", 35, 3, 1, 280)); }
void frontier_1t(benchmark::State& state) { frontier_of(state, request_for("gpt-1t", 64, 1, 1, 512)); }
BENCHMARK(frontier_22b)->Unit(benchmark::kMillisecond);
BENCHMARK(frontier_175b)->Unit(benchmark::kMillisecond);
BENCHMARK(frontier_530b)->Unit(benchmark::kMillisecond);
BENCHMARK(frontier_1t)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headroom
