// Layers placed by time and memory against every layout that there is.
#include "headroom/search/layers_by_time.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_places.hpp"
#include "headroom/plan/layer_prices.hpp"
#include "headroom/search/lightest_stages.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

using Layers = std::vector<std::int64_t>;

// Every way to lay so many layers on so many stages, at least one each; none at the ends if they may be bare.
std::vector<Layers> layouts(std::int64_t layers, std::int64_t stages, bool bare_ends, bool first = true) {
  if (stages == 1)
    return layers >= (bare_ends ? 0 : 1) ? std::vector<Layers>{{layers}} : std::vector<Layers>{};
  std::vector<Layers> all;
  for (std::int64_t count = first && bare_ends ? 0 : 1; count <= layers; ++count) {
    for (Layers rest : layouts(layers - count, stages - 1, bare_ends, false)) {
      rest.insert(rest.begin(), count);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

// A pipeline whose ranks have about the memory that they need. Its layers are of one kind or of several.
std::optional<Request> any_pipeline() {
  const std::string model = *rc::gen::element<std::string>("llama-2-7b", "deepseek-v3", "qwen3-next-80b-a3b");
  Request request = small_request();
  request.software.uneven_stages = true;
  request.system.reserves.clear();  // which would dwarf what moving a layer changes
  if (model != "llama-2-7b") request.model = read_model(model);
  request.model = with_layers(request.model, *rc::gen::inRange<std::int64_t>(6, 10));
  request.workload = {.global_batch = 12 * *rc::gen::inRange<std::int64_t>(1, 4),
                      .sequence = *rc::gen::element<std::int64_t>(48, 1200)};
  Strategy& strategy = request.strategy;
  using Sizes = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const auto [p, m] = *rc::gen::elementOf(Sizes{{2, 1}, {3, 1}, {4, 1}, {5, 1}, {2, 2}, {3, 2}, {2, 3}});
  strategy.pipeline_parallel = p;
  strategy.virtual_pipeline = m;
  strategy.schedule = m > 1 ? ScheduleKind::interleaved : ScheduleKind::one_forward_one_backward;
  strategy.data_parallel = *rc::gen::element<std::int64_t>(1, 2);
  strategy.data_sharding = *rc::gen::element(DataSharding::none, DataSharding::zero1);
  strategy.recompute.policy = *rc::gen::element(RecomputePolicy::none, RecomputePolicy::full);
  request.system.memory = 10'000'000_MiB;
  if (!illegalities(request.model, strategy, request.workload, request.software).empty()) return std::nullopt;
  Composer composer(request);
  const Layout layout = composer.layout(strategy);
  request.system.memory = *rc::gen::element(0.9, 1.0, 1.06, 1.2, 4.0) * layout.peak(strategy).bytes;
  return request;
}

}  // namespace

TEST_CASE("layers by time: what a rank would hold is what it holds where the layers lie so") {
  CHECK(rc::check([] {
    const std::optional<Request> request = any_pipeline();
    if (!request) return;
    Strategy other = request->strategy;
    other.stage_layers = *rc::gen::elementOf(layouts(
        request->model.layers, other.pipeline_parallel * other.virtual_pipeline, other.virtual_pipeline > 1));
    Composer composer(*request);
    const Evaluation evaluation = composer.evaluate(other);
    const Plan& plan = account(evaluation);
    const Layout layout = composer.layout(request->strategy);
    const std::vector<StagePlace> places = stage_places(layout.layers().layers(), other);
    for (std::int64_t rank = 0; rank < other.pipeline_parallel; ++rank) {
      std::vector<StagePlace> chunks;
      for (std::int64_t chunk = 0; chunk < other.virtual_pipeline; ++chunk)
        chunks.push_back(places[index(stage_of(layout.shape(), rank, chunk))]);
      RC_ASSERT(layout.rank_total(request->strategy, rank, chunks) == total(plan.ranks[index(rank)]));
    }
  }));
}

TEST_CASE("layers by time: they fit where any layout does, and take little longer than the fastest") {
  int placed = 0;
  int none = 0;
  int missed = 0;           // fit nowhere, though some layout does
  std::vector<double> one;  // time over the least: one virtual stage a rank
  std::vector<double> several;
  CHECK(rc::check([&] {
    const std::optional<Request> request = any_pipeline();
    if (!request) return;
    Composer composer(*request);
    const auto time_of = [&](const Strategy& strategy) -> std::optional<Seconds> {
      const Layout layout = composer.layout(strategy);
      if (verdict_of(*request, layout.peak(strategy).bytes) != Verdict::fits) return std::nullopt;
      return layout.iteration(strategy);
    };
    const Strategy& own = request->strategy;
    const bool interleaves = own.virtual_pipeline > 1;
    std::optional<Seconds> fastest;
    Strategy strategy = own;
    for (Layers& layers :
         layouts(request->model.layers, own.pipeline_parallel * own.virtual_pipeline, interleaves)) {
      strategy.stage_layers = std::move(layers);
      const std::optional<Seconds> time = time_of(strategy);
      if (time) fastest = std::min(*time, fastest.value_or(*time));
    }
    const std::optional<Strategy> found = with_layers_by_time(*request, composer, own);
    const std::optional<Seconds> time = time_of(found.value_or(own));
    if (found) {
      RC_ASSERT(illegalities(request->model, *found, request->workload, request->software).empty());
      RC_ASSERT(time.has_value());
    }
    if (!fastest) ++none;
    if (!interleaves) RC_ASSERT(time.has_value() == fastest.has_value());
    if (!time) {
      missed += fastest ? 1 : 0;
      return;
    }
    placed += found ? 1 : 0;
    (interleaves ? several : one).push_back(*time / *fastest);
  }));
  CHECK(placed >= 20);
  CHECK(none >= 10);
  CHECK(missed <= 1);
  std::sort(one.begin(), one.end());
  std::sort(several.begin(), several.end());
  REQUIRE(one.size() >= 20);
  REQUIRE(several.size() >= 10);
  CHECK(one.back() < 1.015);
  CHECK(several.back() < 1.14);
  CHECK(several[several.size() * 9 / 10] < 1.01);
}

TEST_CASE("lightest stages: no allowed cut has a smaller sum of heaviest stages") {
  CHECK(rc::check([] {
    const std::int64_t ranks = *rc::gen::inRange<std::int64_t>(1, 4);
    const std::int64_t chunks = *rc::gen::inRange<std::int64_t>(1, 4);
    std::vector<double> of_layer(index(*rc::gen::inRange<std::int64_t>(1, 10)));
    for (double& load : of_layer) load = *rc::gen::element(1.0, 2.0, 2.5);
    const double end = *rc::gen::element(0.0, 1.5, 6.0);
    const double most = *rc::gen::element(3.0, 6.0, 100.0);
    const std::int64_t stages = ranks * chunks;
    const StageLoad load = [&](std::int64_t stage, std::int64_t first,
                               std::int64_t last) -> std::optional<double> {
      double sum = 0;
      for (std::int64_t i = first; i < last; ++i) sum += of_layer[index(i)];
      const bool bare = first == last && (chunks == 1 || (stage != 0 && stage != stages - 1));
      if (bare || sum > most) return std::nullopt;
      return sum + (stage == stages - 1 ? end : 0);
    };
    const auto sum_of = [&](const Layers& layers) -> std::optional<double> {
      double sum = 0;
      std::int64_t first = 0;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        double heaviest = 0;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const std::int64_t stage = chunk * ranks + rank;
          const std::int64_t last = first + layers[index(stage)];
          const std::optional<double> one = load(stage, first, last);
          if (!one) return std::nullopt;
          heaviest = std::max(heaviest, *one);
          first = last;
        }
        sum += heaviest;
      }
      return sum;
    };
    std::optional<double> least;
    for (const Layers& layers : layouts(std::ssize(of_layer), stages, chunks > 1)) {
      if (const std::optional<double> sum = sum_of(layers)) least = std::min(*sum, least.value_or(*sum));
    }
    const std::optional<Layers> cut = lightest_stages(std::ssize(of_layer), ranks, chunks, load);
    RC_ASSERT(cut.has_value() == least.has_value());
    if (cut) RC_ASSERT(sum_of(*cut) == least);
  }));
}

// Layouts of Megatron-Bridge 26.02 for 1024 H100 and 26.06 for 256 GB200
// [scripts/performance/configs/deepseek/deepseek_workload_base_configs.py].
TEST_CASE("layers by time: DeepSeek-V3's layouts by hand are met or beaten") {
  struct ByHand {
    const char* system;
    Strategy strategy;
    std::int64_t global_batch;
  };
  Strategy on_h100;
  on_h100.tensor_parallel = 2;
  on_h100.pipeline_parallel = 8;
  on_h100.virtual_pipeline = 4;
  on_h100.data_parallel = on_h100.expert_parallel = 64;
  on_h100.schedule = ScheduleKind::interleaved;
  on_h100.sequence_parallel = true;
  on_h100.recompute = {.policy = RecomputePolicy::ops, .ops = {"mla_up_proj", "mlp"}};
  on_h100.data_sharding = DataSharding::zero1;
  on_h100.gradient_dtype = Dtype::bf16;
  Strategy on_gb200 = on_h100;
  on_gb200.tensor_parallel = 1;
  on_gb200.pipeline_parallel = 4;
  on_gb200.recompute.ops = {"mla_up_proj"};
  on_h100.stage_layers = Layers(32, 2);
  on_h100.stage_layers.front() = 1;
  on_h100.stage_layers.back() = 0;
  on_gb200.stage_layers = Layers(16, 4);
  on_gb200.stage_layers.back() = 1;
  for (const ByHand& hand : {ByHand{"dgx-h100-80g", on_h100, 8192}, ByHand{"gb200-nvl72", on_gb200, 2048}}) {
    CAPTURE(hand.system);
    Request request{.model = read_model("deepseek-v3"),
                    .system = read_system(hand.system),
                    .software = read_software("megatron-core-2025"),
                    .strategy = hand.strategy,
                    .workload = {.global_batch = hand.global_batch, .sequence = 4096}};
    REQUIRE(illegalities(request.model, hand.strategy, request.workload, request.software).empty());
    Composer composer(request);
    const Layout layout = composer.layout(hand.strategy);
    const Seconds by_hand = layout.iteration(hand.strategy);
    Strategy open = hand.strategy;  // laid as the search lays it
    open.stage_layers = balanced_layers(layer_loads(request.model), std::ssize(hand.strategy.stage_layers),
                                        end_loads(request.model));
    const std::optional<Strategy> placed = with_layers_by_time(request, composer, open);
    REQUIRE(placed.has_value());
    const Layout faster = composer.layout(*placed);
    CHECK(faster.iteration(*placed) <= by_hand);
    CHECK(verdict_of(request, faster.peak(*placed).bytes) == Verdict::fits);
  }
}

}  // namespace headroom
