// What a search costs: strategies a second on one core, what an evaluation takes and which part of it dominates, whole
// spaces, threads, and memory.
//
//   evaluate_all   memory of the peak rank, time and MFU of every strategy of a space, whether it fits or not, from a
//                  cold start: nothing is pruned
//   whole_space    search() over the space. What does not fit is not timed, and what is too slow at the least is not
//                  timed exactly: `timed` are those whose memory, time and MFU are known, `memory_only` the others
//   parts          the shares of evaluate_all's time
//   offloading     search() with offloaded modules, over one without
#include <array>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <new>
#include <thread>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/search.hpp"

namespace {

// Bytes that the program holds, and the most that it held.
std::atomic<std::int64_t> held = 0;
std::atomic<std::int64_t> most_held = 0;

void* allocate(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  const auto bytes = static_cast<std::int64_t>(malloc_usable_size(memory));
  const std::int64_t now = held.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > most_held.load(std::memory_order_relaxed)) most_held.store(now, std::memory_order_relaxed);
  return memory;
}

void release(void* memory) {
  held.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }

namespace headroom {
namespace {

// K22's models: 175B on 64, 530B on 2240 and 1T on 3072 devices, a sequence for each of them.
Request request_for(const char* model, std::int64_t batch) {
  Request request{.model = read_model(model),
                  .system = read_system("dgx-a100-80g"),
                  .software = read_software("megatron-2022")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  request.strategy.gradient_dtype = Dtype::half;
  return request;
}

benchmark::Counter rate(std::int64_t count) {
  return {static_cast<double>(count), benchmark::Counter::kIsRate};
}

// Seconds for each of `count`: printed with the prefix n.
benchmark::Counter each(std::int64_t count) {
  return {static_cast<double>(count), benchmark::Counter::kIsRate | benchmark::Counter::kInvert};
}

enum class Depth { enumerate, layouts, memory, time };

// Visits a space and asks as much of each of its strategies as `depth` says. How many strategies there are.
std::int64_t visit(const Request& request, const Space& space, Composer& composer, Depth depth) {
  std::int64_t strategies = 0;
  visit_layouts(
      request, space,
      [&](const Strategy& layout) {
        const std::vector<Recomputation> list = recomputations(request, space, layout);
        const std::vector<ShardingChoice> choices = sharding_choices(request, space, layout);
        std::optional<Layout> placed;
        if (depth >= Depth::layouts) placed = composer.layout(layout, list);
        Strategy strategy = layout;
        for (const Recomputation& recompute : list) {
          strategy.recompute = recompute;
          for (const ShardingChoice& sharding : choices) {
            strategy.data_sharding = sharding.data_sharding;
            ++strategies;
            if (depth >= Depth::memory) benchmark::DoNotOptimize(placed->peak(strategy));
            if (depth < Depth::time) continue;
            const Seconds iteration = placed->iteration(strategy);
            benchmark::DoNotOptimize(iteration);
            benchmark::DoNotOptimize(placed->mfu(iteration));
          }
        }
        return true;
      },
      [](const Problem&) {});
  return strategies;
}

void evaluate_all(benchmark::State& state, const char* model, std::int64_t devices) {
  const Request request = request_for(model, devices);
  const Space space{.devices = devices};
  std::int64_t strategies = 0;
  for (auto _ : state) {
    Composer composer(request);
    strategies += visit(request, space, composer, Depth::time);
  }
  state.counters["strategies"] = rate(strategies);
  state.counters["each"] = each(strategies);
}

// With windows, a space that takes long enough for threads to matter.
void whole_space(benchmark::State& state, const char* model, std::int64_t devices, bool windows) {
  const Request request = request_for(model, devices);
  const auto threads = static_cast<unsigned>(state.range(0));
  const Space space{.devices = devices, .recompute_window = windows};
  SearchEffort effort;
  SearchResult result;
  std::int64_t strategies = 0;
  for (auto _ : state) {
    effort = {};
    result = search(request, space, {.threads = threads, .effort = &effort});
    strategies += result.evaluated;
  }
  state.counters["strategies"] = rate(strategies);
  state.counters["timed"] = static_cast<double>(effort.timed);
  state.counters["memory_only"] = static_cast<double>(result.evaluated - effort.timed);
}

// Cold: with all that the space has to have priced. Warm: layers priced before.
void parts(benchmark::State& state, const char* model, std::int64_t devices) {
  const Request request = request_for(model, devices);
  const Space space{.devices = devices};
  std::array<double, 4> warm{};
  double cold = 0;
  const auto seconds = [&](Composer& composer, Depth depth) {
    const std::clock_t start = std::clock();  // of the processor, so that other programs count less
    visit(request, space, composer, depth);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  for (auto _ : state) {
    Composer composer(request);
    cold += seconds(composer, Depth::time);
    for (const Depth depth : {Depth::enumerate, Depth::layouts, Depth::memory, Depth::time}) {
      warm[static_cast<std::size_t>(depth)] += seconds(composer, depth);
    }
  }
  const auto share = [&](const char* name, double part) { state.counters[name] = part / cold; };
  share("enumeration", warm[0]);
  share("layouts", warm[1] - warm[0]);
  share("memory", warm[2] - warm[1]);
  share("schedules_and_time", warm[3] - warm[2]);
  share("pricing_layers", cold - warm[3]);
}

// What a strategy costs where offloading is searched: `over_plain`, the time for each over that without.
void offloading(benchmark::State& state, const char* model, std::int64_t devices) {
  Request request{.model = read_model(model),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("megatron-core-2025"),
                  .strategy = {},
                  .workload = {.global_batch = 8 * devices, .sequence = 4096}};
  const auto seconds_each = [&](bool offload) {
    const std::clock_t start = std::clock();
    const SearchResult result = search(request, {.devices = devices, .offload = offload});
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / static_cast<double>(result.evaluated);
  };
  double plain = 0;
  double with = 0;
  for (auto _ : state) {
    plain += seconds_each(false);
    with += seconds_each(true);
  }
  state.counters["over_plain"] = with / plain;
}

// The most bytes that a search holds beyond its request, for spaces of growing size: batches with ever more divisors.
// What is kept are the prices of layers, for each t, b and sequence parallelism, and no strategy but the best.
void bytes_held(benchmark::State& state) {
  const Request request = request_for("gpt3-175b", 64 * state.range(0));
  std::int64_t bytes = 0;
  SearchResult result;
  for (auto _ : state) {
    result = {};
    const std::int64_t before = held;
    most_held = before;
    result = search(request, {.devices = 64});
    bytes = most_held - before;
  }
  state.counters["KiB"] = static_cast<double>(bytes) / kibi;
  state.counters["strategies"] = static_cast<double>(result.evaluated);
  state.counters["bytes_each"] = static_cast<double>(bytes) / static_cast<double>(result.evaluated);
}

void of_spaces(auto* benchmark) { benchmark->Unit(benchmark::kMillisecond); }

BENCHMARK_CAPTURE(evaluate_all, 175b_on_64, "gpt3-175b", 64)->Apply(of_spaces);
BENCHMARK_CAPTURE(evaluate_all, 530b_on_2240, "mt-nlg-530b", 2240)->Apply(of_spaces);
BENCHMARK_CAPTURE(evaluate_all, 1t_on_3072, "gpt-1t", 3072)->Apply(of_spaces);

BENCHMARK_CAPTURE(parts, 175b_on_64, "gpt3-175b", 64)->Apply(of_spaces);
BENCHMARK_CAPTURE(parts, 530b_on_2240, "mt-nlg-530b", 2240)->Apply(of_spaces);
BENCHMARK_CAPTURE(parts, 1t_on_3072, "gpt-1t", 3072)->Apply(of_spaces);

void over_threads(auto* benchmark) {
  const auto all = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  for (std::int64_t threads = 1; threads < all; threads *= 2) benchmark->Arg(threads);
  benchmark->Arg(all)->ArgName("threads")->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_CAPTURE(whole_space, 175b_on_64, "gpt3-175b", 64, false)->Apply(over_threads);
BENCHMARK_CAPTURE(whole_space, 530b_on_2240, "mt-nlg-530b", 2240, false)->Apply(over_threads);
BENCHMARK_CAPTURE(whole_space, 1t_on_3072, "gpt-1t", 3072, false)->Apply(over_threads);
BENCHMARK_CAPTURE(whole_space, 175b_on_64_windows, "gpt3-175b", 64, true)->Apply(over_threads);

BENCHMARK_CAPTURE(offloading, mixtral_on_8, "mixtral-8x7b", 8)->Apply(of_spaces);

BENCHMARK(bytes_held)->ArgName("batch/64")->Arg(1)->Arg(6)->Arg(60)->Arg(840)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headroom
