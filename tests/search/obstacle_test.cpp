#include "headroom/search/obstacle.hpp"

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/search/find.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

Request plain_request() {
  Request request{.model = read_model("gpt3-13b"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 16, .sequence = request.model.sequence};
  return request;
}

// As many layouts as are legal, each counted.
std::int64_t legal_layouts(const Request& request, const Space& space) {
  std::int64_t count = 0;
  visit_layouts(
      request, space, [&](const Strategy&) { return ++count > 0; }, [](const Problem&) {});
  return count;
}

TEST_CASE("obstacle: where there is one, no layout is legal") {
  CHECK(rc::check([] {
    const Request request = small_request();
    Space space = small_space();
    space.devices = *rc::gen::inRange<std::int64_t>(1, 40);
    if (*rc::gen::arbitrary<bool>()) space.tensor_parallel.only = {*rc::gen::inRange<std::int64_t>(1, 6)};
    if (*rc::gen::arbitrary<bool>()) space.pipeline_parallel.only = {*rc::gen::inRange<std::int64_t>(1, 6)};
    if (*rc::gen::arbitrary<bool>()) space.data_parallel.only = {*rc::gen::inRange<std::int64_t>(1, 6)};
    if (obstacle(request, space)) RC_ASSERT(legal_layouts(request, space) == 0);
    std::int64_t rejected = 0;
    visit_layouts(
        request, space, [](const Strategy&) { return true; }, [&](const Problem&) { ++rejected; });
    const bool none_legal = legal_layouts(request, space) == 0 && rejected > 0;
    RC_ASSERT(broken_rule(request, space).has_value() == none_legal);
    RC_ASSERT((most_model_parallel(request, space) == 0) == (legal_layouts(request, space) == 0));
  }));
}

TEST_CASE("obstacle: the rule that most layouts break is told as the first of them breaks it") {
  Request request = plain_request();
  const Space space{.devices = 16, .context_parallel = {.only = {2}}, .cp_comm = {CpComm::p2p}};
  request.model.architecture.kernels.attention = AttentionKernel::flash;
  CHECK(!broken_rule(request, space));
  request.model.architecture.window = 128;
  const std::optional<Problem> problem = broken_rule(request, space);
  REQUIRE(problem);
  CHECK(problem->where == "cp_comm");
  CHECK(problem->rule.find("must be all_gather or a2a for sliding windows") == 0);
}

TEST_CASE("obstacle: a rule of what no search chooses is told before those of layouts") {
  Request request{.model = read_model("llama-2-7b"),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("deepspeed-2025")};
  request.workload = {.global_batch = 64, .sequence = request.model.sequence};
  request.strategy.optimizer.exp_avg = MomentDtype::bf16;
  const std::optional<Problem> problem = broken_rule(request, {.devices = 8});
  REQUIRE(problem);
  CHECK(problem->where == "optimizer");
}

TEST_CASE("obstacle: it names the first size that divides nothing") {
  Request request = plain_request();
  request.workload.global_batch = 7;
  const auto named = [&](const Space& space) {
    const std::optional<Problem> problem = obstacle(request, space);
    return problem ? problem->where : "";
  };
  CHECK(named({.devices = 16, .tensor_parallel = {.only = {3, 5}}}) == "tensor_parallel");
  CHECK(named({.devices = 16, .tensor_parallel = {.only = {2}}, .pipeline_parallel = {.only = {3}}}) ==
        "pipeline_parallel");
  CHECK(named({.devices = 16, .tensor_parallel = {.only = {2}}, .data_parallel = {.only = {3}}}) ==
        "data_parallel");
  CHECK(named({.devices = 16, .data_parallel = {.only = {2}}}) == "global_batch");
  CHECK(named({.devices = 16}).empty());
  CHECK(obstacle(request, {.devices = 16, .tensor_parallel = {.only = {3, 5}}})->rule ==
        "must divide the GPUs (TP 3 or 5: 16)");
  CHECK(named({.devices = 16, .expert_parallel = {.only = {8}}}) == "expert_parallel");
  CHECK(named({.devices = 16, .expert_parallel = {.only = {1, 8}}}).empty());
  request.model.architecture.experts = Experts{.count = 8, .per_token = 2, .feedforward = 64};
  CHECK(named({.devices = 16, .expert_parallel = {.only = {3, 5}}}) == "expert_parallel");
  CHECK(named({.devices = 16, .expert_parallel = {.only = {3, 4}}}).empty());
  request.workload.global_batch = 16;
  CHECK(obstacle(request,
                 {.devices = 4, .pipeline_parallel = {.only = {2}}, .expert_parallel = {.only = {4, 8}}})
            ->rule ==
        "times `expert_tensor_parallel` must divide the GPUs of each pipeline rank (EP 4 or 8: "
        "4 GPUs / PP 2)");
  CHECK(obstacle(request, {.devices = 8, .tensor_parallel = {.most = 2}, .pipeline_parallel = {.only = {3}}})
            ->rule == "times `tensor_parallel` must divide the GPUs (TP up to 2 x PP 3: 8)");
}

TEST_CASE("obstacle: an inverse question that finds nothing says it") {
  const Request request = plain_request();
  const Space space{.devices = 16, .tensor_parallel = {.only = {3}}};
  for (const Extreme extreme : {Extreme::max_sequence, Extreme::max_layers, Extreme::max_batch}) {
    CAPTURE(name_of(extreme));
    const Found found = find(request, space, {.extreme = extreme, .most = 4096});
    CHECK(!found.value);
    REQUIRE(found.obstacle);
    CHECK(found.obstacle->where == "tensor_parallel");
  }
  const Found fewest = find(request, space, {.extreme = Extreme::min_devices, .most = 8});
  CHECK(!fewest.value);
}

}  // namespace
}  // namespace headroom
