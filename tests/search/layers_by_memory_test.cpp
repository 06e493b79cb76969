// Layers placed by memory against every placement that there is.
#include "headroom/search/layers_by_memory.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/parallel/legality.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

// Every way to lay so many layers on so many ranks, a layer each at least.
std::vector<std::vector<std::int64_t>> placements(std::int64_t layers, std::int64_t ranks) {
  if (ranks == 1) return {{layers}};
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t first = 1; first <= layers - (ranks - 1); ++first) {
    for (std::vector<std::int64_t> rest : placements(layers - first, ranks - 1)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

// A pipeline of which at least one rank may hold more than it may, by a little.
struct FullPipeline {
  Request request;
  Space space{.devices = 4, .layouts = Layouts::any};
};

std::optional<FullPipeline> any_full_pipeline() {
  FullPipeline full{.request = small_request()};
  Request& request = full.request;
  request.system.reserves.clear();  // which would dwarf what moving a layer changes
  request.model.layers = *rc::gen::element<std::int64_t>(4, 6, 7, 9, 10);
  request.workload.sequence = *rc::gen::element<std::int64_t>(48, 600, 1200);
  request.workload.global_batch = 8 * *rc::gen::inRange<std::int64_t>(1, 4);
  Strategy strategy = request.strategy;
  strategy.pipeline_parallel = *rc::gen::element<std::int64_t>(2, 3, 4);
  strategy.data_parallel = *rc::gen::element<std::int64_t>(1, 2);
  strategy.micro_batch = *rc::gen::element<std::int64_t>(1, 2);
  strategy.data_sharding = *rc::gen::element(DataSharding::none, DataSharding::zero1);
  strategy.schedule = *rc::gen::weightedElement<ScheduleKind>(
      {{1, ScheduleKind::gpipe}, {3, ScheduleKind::one_forward_one_backward}});
  strategy.recompute.policy = *rc::gen::element(RecomputePolicy::none, RecomputePolicy::full);
  if (strategy.recompute.policy == RecomputePolicy::full) {
    strategy.recompute.layers = *rc::gen::element<std::int64_t>(0, 1, 2);
  }
  if (!illegalities(request.model, strategy, request.workload, request.software).empty()) return std::nullopt;
  strategy.stage_layers =
      balanced_layers(request.model.layers, strategy.pipeline_parallel, end_loads(request.model));
  request.strategy = strategy;
  Composer composer(request);
  const Layout layout = composer.layout(strategy);
  request.system.memory = *rc::gen::element(0.8, 0.9, 0.95, 1.0, 1.04) * layout.peak(strategy).bytes;
  return full;
}

}  // namespace

TEST_CASE("layers by memory: what a rank would hold is what it holds where the layers lie so") {
  CHECK(rc::check([] {
    const std::optional<FullPipeline> full = any_full_pipeline();
    if (!full) return;
    const Request& request = full->request;
    const auto all = placements(request.model.layers, request.strategy.pipeline_parallel);
    Request other = request;
    other.strategy.stage_layers = *rc::gen::elementOf(all);
    const Plan plan = account(evaluate(other));
    Composer composer(request);
    const Layout layout = composer.layout(request.strategy);
    for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
      const auto place = static_cast<std::int64_t>(rank);
      const std::int64_t layers = other.strategy.stage_layers[rank];
      RC_ASSERT(layout.rank_total(request.strategy, place, layers) == total(plan.ranks[rank]));
      RC_ASSERT(layout.least_rank_total(request.strategy, place, layers) <= total(plan.ranks[rank]));
    }
  }));
}

TEST_CASE(
    "layers by memory: they fit where any placement does, and take little longer than the fastest that "
    "fits") {
  int placed = 0;
  int none = 0;
  double slowest = 1;
  CHECK(rc::check([&] {
    const std::optional<FullPipeline> full = any_full_pipeline();
    if (!full) return;
    const Request& request = full->request;
    Composer composer(request);
    const Layout layout = composer.layout(request.strategy);
    if (verdict_of(request, layout.peak(request.strategy).bytes) == Verdict::fits) return;
    LayersByMemory by_memory(request, full->space);
    RC_ASSERT(by_memory.applies(request.strategy));
    const std::optional<Strategy> found = by_memory.fitting(layout, request.strategy);

    std::optional<Seconds> fastest;
    Strategy strategy = request.strategy;
    for (const std::vector<std::int64_t>& layers :
         placements(request.model.layers, strategy.pipeline_parallel)) {
      strategy.stage_layers = layers;
      const Layout other = composer.layout(strategy);
      if (verdict_of(request, other.peak(strategy).bytes) != Verdict::fits) continue;
      const Seconds time = other.iteration(strategy);
      fastest = std::min(time, fastest.value_or(time));
    }
    RC_ASSERT(found.has_value() == fastest.has_value());
    if (!found) {
      ++none;
      return;
    }
    ++placed;
    const Layout fitting = composer.layout(*found);
    RC_ASSERT(verdict_of(request, fitting.peak(*found).bytes) == Verdict::fits);
    slowest = std::max(slowest, fitting.iteration(*found) / *fastest);
  }));
  CHECK(placed >= 10);
  CHECK(none >= 10);
  CAPTURE(slowest);
  CHECK(slowest < 1.03);
}

TEST_CASE(
    "layers by memory: not where a launcher lays layers evenly, nor with several virtual stages a rank") {
  Request request{.model = read_model("gpt2-xl"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 8, .sequence = request.model.sequence};
  Space space{.devices = 4, .layouts = Layouts::any};
  Strategy layout{.pipeline_parallel = 4};
  layout.stage_layers = balanced_layers(request.model.layers, 4, end_loads(request.model));
  CHECK(LayersByMemory(request, space).applies(layout));
  Strategy other = layout;
  other.stage_layers = {3, 15, 15, 15};
  CHECK(!LayersByMemory(request, space).applies(other));
  other = layout;
  other.schedule = ScheduleKind::zero_bubble_h1;
  CHECK(!LayersByMemory(request, space).applies(other));
  other = {.pipeline_parallel = 4, .virtual_pipeline = 2, .schedule = ScheduleKind::interleaved};
  CHECK(!LayersByMemory(request, space).applies(other));
  space.layouts = Layouts::even;
  CHECK(!LayersByMemory(request, space).applies(layout));
}

}  // namespace headroom
