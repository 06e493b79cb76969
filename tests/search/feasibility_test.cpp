// What the inverse questions take for granted: which part of a space needs least, and what no strategy goes below.
#include "headroom/search/feasibility.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/search/insisted.hpp"
#include "parallel/random_strategies.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

std::optional<Bytes> least_peak(const Request& request, const Space& space) {
  std::optional<Bytes> least;
  Composer composer(request);
  for (const Strategy& strategy : strategies(request, space)) {
    const Layout layout = composer.layout(strategy);
    const Bytes peak = layout.peak(strategy).bytes;
    least = std::min(least.value_or(peak), peak);
  }
  return least;
}

TEST_CASE("feasibility: nothing in a space needs less than its leanest part") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    RC_ASSERT(least_peak(request, leanest(request, space)) == least_peak(request, space));
  }));
}

TEST_CASE("feasibility: no strategy of any model and stack holds less than the inputs of its layers") {
  constexpr int count = 3000;
  int recomputed = 0;
  int bounded = 0;  // by what they hold besides state
  RandomStrategies questions(29);
  for (int i = 0; i < count; ++i) {
    Request request = questions.next();
    request.detail = i % 2 == 0 ? Detail::paper : Detail::exact;
    Strategy& strategy = request.strategy;
    if (strategy.recompute.window || !illegalities(request, strategy).empty()) continue;
    Composer composer(request);
    const Layout layout = composer.layout(strategy);
    const Bytes least = layout.least_peak(strategy);
    CAPTURE(i);
    CHECK(least <= layout.peak(strategy).bytes);
    recomputed += strategy.recompute.policy == RecomputePolicy::none ? 0 : 1;
    bounded += least > Bytes(0.3 * layout.peak(strategy).bytes.count()) ? 1 : 0;
  }
  CHECK(recomputed > 15);
  CHECK(bounded > 100);
}

TEST_CASE("feasibility: with ZeRO 2 under a pipeline, virtual stages may need the least") {
  Request request{.model = with_layers(read_model("llama-3-8b"), 16),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("own")};
  request.workload = {.global_batch = 16, .sequence = 1024};
  request.strategy = with_stack_defaults({}, request.software, request.model);
  Space space{.devices = 16,
              .tensor_parallel = {.only = {1}},
              .pipeline_parallel = {.only = {4}},
              .schedules = {ScheduleKind::one_forward_one_backward, ScheduleKind::interleaved}};
  const std::optional<Bytes> least = least_peak(request, space);
  CHECK(least_peak(request, leanest(request, space)) == least);
  space.data_sharding = {DataSharding::zero1};
  CHECK(least_peak(request, space) > least);
}

TEST_CASE("feasibility: is that of trying every strategy") {
  CHECK(rc::check([] {
    const Request small = small_request();
    Space space = small_space();
    space.recompute_window = *rc::gen::arbitrary<bool>();
    const Request request = with_insisted(small, space);
    bool any = false;
    Seconds fastest(1e9);
    for (const PlacedStrategy& it : placed_strategies(request, space)) {
      Request asked = request;
      asked.strategy = it.strategy;
      const Evaluation evaluation = evaluate(asked);
      if (const auto* plan = std::get_if<Plan>(&evaluation);
          plan != nullptr && plan->verdict == Verdict::fits) {
        any = true;
        fastest = std::min(fastest, plan->timing->iteration.total);
      }
    }
    Feasibility feasibility(request);
    RC_ASSERT(feasibility.fits(space) == any);
    RC_ASSERT(feasibility.fits_within(space, fastest) == any);
    RC_ASSERT(!feasibility.fits_within(space, 0.999 * fastest));
  }));
}

TEST_CASE("feasibility: no devices hold less than the model's state or compute faster than their peak") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const Bytes taken = reserved(request.system, request.software, Strategy{});
    for (const Strategy& strategy : strategies(request, space)) {
      Request asked = request;
      asked.strategy = strategy;
      const Plan plan = account(evaluate(asked));
      RC_ASSERT(static_cast<double>(space.devices) * (peak(plan) - taken) >= least_state(request));
      RC_ASSERT(plan.timing->throughput.mfu <= 1);
    }
  }));
}

TEST_CASE("feasibility: the fewest devices for a model's state and a time") {
  Request request{.model = read_model("gpt3-175b"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 1536, .sequence = 2048};
  // 174.6 B parameters of 18 bytes over what the margin of 5% and reserves leave of 80 GiB each.
  CHECK(devices_lower_bound(request, Space(), {}) == 40);
  request.margin = 0;
  CHECK(devices_lower_bound(request, Space(), {}) == 38);
  // An iteration is 6 x 174.6 B x 3.1 M FLOPs and more: half a minute of 312 TFLOP/s of 353 devices.
  const std::int64_t fast = devices_lower_bound(request, Space(), Seconds(30));
  CHECK(fast > 350);
  CHECK(fast < 370);
  CHECK(devices_lower_bound(request, Space(), Seconds(1e-30)) == 2147483647);
}

}  // namespace
}  // namespace headroom
