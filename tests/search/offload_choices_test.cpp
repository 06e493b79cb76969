// Searches that try what the host can keep: every plan is legal and is what evaluate() says, and what a host lacks is said to be its.
#include "headroom/search/offload_choices.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/plan/remedies.hpp"
#include "headroom/search/search.hpp"

namespace headroom {
namespace {

Request on_one_node(const char* model, const char* software) {
  return {.model = read_model(model),
          .system = read_system("dgx-h100-80g"),
          .software = read_software(software),
          .strategy = {},
          .workload = {.global_batch = 16, .sequence = 8192}};
}

Space with_the_host() {
  Space space{.devices = 8, .recompute_layers = false};
  space.micro_batch = {.only = {1}};
  space.virtual_pipeline = {.only = {1}};
  space.offload = true;
  return space;
}

}  // namespace

TEST_CASE("offload choices: plans of a search are what evaluate says of them") {
  for (const char* software : {"torchtitan-2025", "megatron-core-2025"}) {
    const Request base = on_one_node("llama-3-8b", software);
    const SearchResult found = search(base, with_the_host());
    REQUIRE(!found.plans.empty());
    bool activations = false;
    std::vector<Candidate> all = found.plans;
    all.insert(all.end(), found.pareto.begin(), found.pareto.end());
    for (const Candidate& one : all) {
      CAPTURE(flags_of(edits_of(one.strategy)));
      Request request = base;
      request.strategy = one.strategy;
      CHECK(illegalities(request, one.strategy).empty());
      const Plan plan = account(evaluate(request));
      CHECK(peak(plan) == one.peak);
      CHECK(plan.timing->iteration.total.count() == doctest::Approx(one.iteration.count()).epsilon(1e-9));
      CHECK(plan.verdict == one.verdict);
      activations = activations || !one.strategy.offload.modules.empty();
    }
    CHECK(activations == (base.software.name == "megatron-core-2025"));  // torchtitan offloads none
  }
}

TEST_CASE(
    "offload choices: what fits on no device may fit with its host, of which there is as much as there is") {
  Request base = on_one_node("llama-3-70b", "torchtitan-2025");
  Space space = with_the_host();
  space.offload = false;
  const SearchResult without = search(base, space);
  CHECK(without.feasible == 0);
  space.offload = true;
  const SearchResult with = search(base, space);
  REQUIRE(with.feasible > 0);
  CHECK(with.plans.front().strategy.offload.parameters);
  CHECK(with.rejected.count("host_memory") == 0);
  base.system.host->memory = Bytes(1e11);
  const SearchResult little = search(base, space);
  CHECK(little.feasible == 0);
  CHECK(little.rejected.at("host_memory") > 0);
  CHECK(little.rejected.at("host_memory") + little.rejected.at("device_memory") == little.evaluated);
  base.system.host.reset();
  CHECK_THROWS_AS(search(base, space), InputError);
}

TEST_CASE("offload choices: remedies leave to the host what does not fit otherwise") {
  Request request = on_one_node("llama-3-70b", "torchtitan-2025");
  request.strategy = {.data_parallel = 8,
                      .recompute = {.policy = RecomputePolicy::full},
                      .data_sharding = DataSharding::zero3};
  REQUIRE(std::holds_alternative<Infeasible>(evaluate(request)));
  const std::vector<Alternative> found = remedies(request, 3);
  REQUIRE(!found.empty());
  CHECK(std::all_of(found.begin(), found.end(), [](const Alternative& one) {
    return one.plan.request.strategy.offload.parameters && one.plan.verdict != Verdict::does_not_fit;
  }));
  // Of a host that has too little, part of the optimizer goes back.
  Request other = on_one_node("llama-3-8b", "megatron-core-2025");
  other.strategy = {.data_parallel = 8,
                    .recompute = {.policy = RecomputePolicy::full},
                    .data_sharding = DataSharding::zero1,
                    .offload = {.optimizer = {1}}};
  other.system.host->memory = Bytes(1e11);
  const std::vector<Alternative> less = remedies(other, 3);
  REQUIRE(!less.empty());
  CHECK(less.front().plan.request.strategy.offload.optimizer.value < 1);
}

}  // namespace headroom
