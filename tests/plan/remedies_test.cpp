#include "headroom/plan/remedies.hpp"

#include <algorithm>
#include <tuple>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stage_layout.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/changes.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

bool fits(const Request& request) {
  return illegalities(request.model, request.strategy, request.workload, request.software).empty() &&
         std::holds_alternative<Plan>(evaluate(request));
}

// GPT-3 on devices of less memory, or with more to hold.
std::vector<Request> requests_that_do_not_fit() {
  std::vector<Request> requests;
  for (const Bytes memory : {80_GiB, 64_GiB, 56_GiB}) {
    requests.push_back(gpt3_on_a100());
    requests.back().system.memory = memory;
  }
  requests.push_back(gpt3_on_a100());
  requests.back().strategy.micro_batch = 4;
  requests.back().workload.global_batch = 256;
  requests.push_back(gpt3_on_a100());
  requests.back().strategy.schedule = ScheduleKind::gpipe;
  requests.back().strategy.virtual_pipeline = 1;
  requests.back().strategy.keep_pipeline_outputs = true;
  return requests;
}

}  // namespace

TEST_CASE("remedies: for GPT-3 of K22 both techniques together are the fastest way to fit") {
  const std::vector<Alternative> found = remedies(gpt3_timed(), 50);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].changes == std::vector<Edits>{{{"sequence_parallel", "yes"}}, {{"recompute", "selective"}}});
  const auto is_full = [](const Alternative& x) {
    return x.changes == std::vector<Edits>{{{"recompute", "full"}}};
  };
  CHECK(std::any_of(found.begin(), found.end(), is_full));
  for (std::size_t i = 1; i < found.size(); ++i) {
    const auto merit = [&](std::size_t at) {
      return std::tuple(found[at].plan.verdict, found[at].plan.timing->iteration.total);
    };
    CHECK(merit(i - 1) <= merit(i));
  }
}

TEST_CASE("remedies: where time is not known the fewest changes come first") {
  const std::vector<Alternative> found = remedies(gpt3_on_a100(), 50);
  REQUIRE_FALSE(found.empty());
  CHECK(found[0].changes.size() == 1);
  for (std::size_t i = 1; i < found.size(); ++i) {
    const auto merit = [&](std::size_t at) {
      return std::tuple(found[at].plan.verdict, found[at].changes.size());
    };
    CHECK(merit(i - 1) <= merit(i));
  }
}

TEST_CASE("remedies: each is legal, fits, and is the plan of its request") {
  for (const Request& request : requests_that_do_not_fit()) {
    REQUIRE_FALSE(fits(request));
    const std::vector<Alternative> found = remedies(request, 5);
    CHECK_FALSE(found.empty());
    CHECK(found.size() <= 5);
    for (const Alternative& remedy : found) {
      const Request& changed = remedy.plan.request;
      CHECK(fits(changed));
      Plan settled_plan = account(settled(evaluate(changed)));
      settled_plan.allocator.reset();
      CHECK(remedy.plan == settled_plan);
      CHECK(peak(remedy.plan) <= request.system.memory);
      CHECK(changed.model == request.model);
      CHECK(changed.system == request.system);
      CHECK(changed.workload == request.workload);
      CHECK(changed != request);
    }
  }
}

TEST_CASE("remedies: all take the same devices, none is named twice, none has a change it could do without") {
  for (const Request& request : requests_that_do_not_fit()) {
    std::vector<std::vector<Edits>> distinct;
    const std::vector<Alternative> found = remedies(request, 50);
    for (const Alternative& remedy : found) {
      CHECK(devices(remedy.plan.request.strategy) == devices(request.strategy));
      CHECK(stage_layout(request.model.layers, remedy.plan.request.strategy) == StageLayout::even);
      for (const Alternative& other : found) {
        CHECK((&other == &remedy || other.plan.request.strategy != remedy.plan.request.strategy));
      }
      for (const auto& other : distinct) CHECK(other != remedy.changes);
      distinct.push_back(remedy.changes);

      // Undoing any part of the strategy leaves it not fitting, or less at ease.
      if (remedy.changes.size() == 1) continue;
      for (const auto& undo :
           {+[](Strategy&it, const Strategy&was) { it.sequence_parallel = was.sequence_parallel; },
            +[](Strategy&it, const Strategy&was) { it.recompute = was.recompute; },
            +[](Strategy&it, const Strategy&was) { it.micro_batch = was.micro_batch; }}) {
        Request less = remedy.plan.request;
        undo(less.strategy, request.strategy);
        if (less == remedy.plan.request) continue;
        CHECK((!fits(less) || account(evaluate(less)).verdict > remedy.plan.verdict));
      }
    }
  }
}

TEST_CASE("remedies: none when nothing helps") {
  Request hopeless = gpt3_on_a100();
  hopeless.system.memory = 2_GiB;
  CHECK(remedies(hopeless, 3).empty());
}

TEST_CASE("remedies: a distributed optimizer is suggested where there are replicas") {
  Request request = with_both_techniques(gpt3_on_a100());
  request.strategy.data_parallel = 8;
  request.workload.global_batch = 512;
  request.system.memory = 48_GiB;
  const std::vector<Alternative> found = remedies(request, 1);
  REQUIRE(found.size() == 1);
  CHECK(found[0].changes == std::vector<Edits>{{{"data_sharding", "zero1"}}});
}

TEST_CASE("improvements: each fits the same devices, is faster, and starts with a change of its own") {
  const Plan plan = account(evaluate(with_both_techniques(gpt3_timed())));
  const std::vector<Alternative> found = improvements(plan, 3);
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Plan& better = found[i].plan;
    CHECK(fits(better.request));
    CHECK(devices(better.request.strategy) == devices(plan.request.strategy));
    CHECK(better.verdict <= plan.verdict);
    CHECK(better.timing->iteration.total < plan.timing->iteration.total);
    for (std::size_t j = 0; j < i; ++j) CHECK(found[j].changes.front() != found[i].changes.front());
  }
}

TEST_CASE("improvements: full recomputation that is not needed is the first to go") {
  Request request = with_both_techniques(gpt3_timed());
  request.strategy.recompute = {.policy = RecomputePolicy::full};
  const std::vector<Alternative> found = improvements(account(evaluate(request)), 1);
  REQUIRE(found.size() == 1);
  CHECK(found[0].plan.request.strategy.recompute.policy == RecomputePolicy::selective);
}

TEST_CASE("improvements: none where time is not known") {
  CHECK(improvements(account(evaluate(with_both_techniques(gpt3_on_a100()))), 3).empty());
}

TEST_CASE("changes: no microbatch is larger than a replica's batch, however large that is") {
  Request request{.model = read_model("llama-3-8b"), .system = read_system("dgx-h100-80g")};
  request.strategy.micro_batch = 1 << 30;  // four of it are more than a field takes
  request.workload = {.global_batch = 1 << 30, .sequence = 2048};
  for (const Edits& change : changes_on_same_devices(request)) {
    Request changed = request;
    apply(change, changed.strategy, changed.workload);
    CHECK(changed.strategy.micro_batch <= request.strategy.micro_batch);
  }
}

TEST_CASE("changes: of long sequences more context parallelism, of experts their modules") {
  const auto names = [](const Request& request, const Edit& edit) {
    for (const Edits& change : changes_on_same_devices(request)) {
      for (const Edit& one : change) {
        if (one == edit) return true;
      }
    }
    return false;
  };
  Request request{.model = read_model("llama-3-8b"), .system = read_system("dgx-h100-80g")};
  request.strategy.data_parallel = 8;
  request.workload = {.global_batch = 64, .sequence = 131'072};
  CHECK(names(request, {"context_parallel", "2"}));
  request.workload.sequence = 8192;
  CHECK_FALSE(names(request, {"context_parallel", "2"}));
  CHECK_FALSE(names(request, {"recompute_ops", "moe_act"}));
  request.model = read_model("mixtral-8x7b");
  CHECK(names(request, {"recompute_ops", "moe_act"}));
  CHECK(names(request, {"recompute_ops", "layernorm,moe_act"}));
}

}  // namespace headroom
