#include "headroom/search/given_values.hpp"

#include <doctest/doctest.h>

#include "headroom/core/contains.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/search/insisted.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

Request gpt3() {
  Request request{.model = read_model("gpt3-175b"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = 64, .sequence = request.model.sequence};
  return request;
}

TEST_CASE("given values: a name that no strategy can have is refused as a single strategy's is") {
  Request request = gpt3();
  request.strategy.offload.modules = {"nonsense"};
  const std::vector<Problem> problems = value_illegalities(request, {.devices = 64});
  REQUIRE(problems.size() == 1);
  CHECK(problems == illegalities(request, request.strategy));
}

TEST_CASE("given values: sizes are refused with the rule's numbers where none of a list is legal") {
  CHECK(value_illegalities(gpt3(), {.devices = 56, .tensor_parallel = {.only = {7, 8}}}).empty());
  const std::vector<Problem> problems =
      value_illegalities(gpt3(), {.devices = 56, .tensor_parallel = {.only = {7}}});
  REQUIRE(!problems.empty());
  CHECK(problems.front() == Problem{"tensor_parallel", "must divide the attention heads (96 % 7 = 5)"});
}

TEST_CASE("given values: weights that step in the backward pass are refused by name, without other rules") {
  Request request{.model = read_model("llama-2-7b"),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("torchtitan-2025")};
  request.workload = {.global_batch = 16, .sequence = 4096};
  request.strategy.step_in_backward = true;
  CHECK(value_illegalities(request, {.devices = 16}).empty());
  const std::vector<Problem> problems =
      value_illegalities(request, {.devices = 16, .pipeline_parallel = {.only = {2}}});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().where == "step_in_backward");
  CHECK(problems.front().rule.find("needs `pipeline_parallel` 1") == 0);
  // A replica's batch of four is one microbatch, or breaks the rule.
  request.workload.global_batch = 64;
  CHECK(value_illegalities(request, {.devices = 16, .micro_batch = {.only = {4}}}).empty());
  bool found = false;
  visit_layouts(
      request, {.devices = 16, .micro_batch = {.only = {4}}},
      [&](const Strategy& layout) { return !(found = layout.micro_batch == 4); }, [](const Problem&) {});
  CHECK(found);
}

TEST_CASE("given values: what goes with some choice of the space only is not refused") {
  Request request = gpt3();
  request.strategy.offload.modules = {"layer_input"};  // needs full recomputation
  CHECK(value_illegalities(request, {.devices = 64}).empty());
  const std::vector<Problem> problems =
      value_illegalities(request, {.devices = 64, .recompute = {RecomputePolicy::none}});
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().where == "offload_modules");
  // Whether sizes make up the GPUs is another question.
  CHECK(value_illegalities(gpt3(), {.devices = 64, .tensor_parallel = {.only = {3}}}).empty());
}

TEST_CASE("given values: a single precision is insisted on, of several the launcher's are chosen") {
  Request request = gpt3();
  request.software = read_software("deepspeed-2025");
  const auto insists = [&](std::vector<Precision> precisions) {
    const Space space{.devices = 64, .precision = std::move(precisions)};
    return contains(insisted_fields(request, space), std::string("precision"));
  };
  CHECK(insists({Precision::fp8}));
  CHECK_FALSE(insists({Precision::bf16, Precision::fp8}));
}

TEST_CASE("given values: a comparison refuses what none of its systems can do") {
  const Space space{.devices = 64, .precision = {Precision::fp8}};
  const Offer a100{.system = read_system("dgx-a100-80g"), .software = read_software("megatron-core-2025")};
  const Offer h100{.system = read_system("dgx-h100-80g"), .software = read_software("megatron-core-2025")};
  const auto compared = [](std::vector<Offer> offers) {
    return Compared{.offers = std::move(offers), .device_counts = {64}, .global_batches = {64}};
  };
  CHECK_THROWS_AS(check_values(gpt3(), space, compared({a100}), ModelSize::given), InputError);
  check_values(gpt3(), space, compared({a100, h100}), ModelSize::given);
}

TEST_CASE("given values: nothing is refused that a strategy of the space has") {
  CHECK(rc::check([] {
    const Request request = small_request();
    Space space = small_space();
    const auto listed = [](std::int64_t most) {
      return Counts{.only = {*rc::gen::inRange<std::int64_t>(1, most)}};
    };
    if (*rc::gen::arbitrary<bool>()) space.tensor_parallel = listed(6);
    if (*rc::gen::arbitrary<bool>()) space.pipeline_parallel = listed(6);
    if (*rc::gen::arbitrary<bool>()) space.context_parallel = listed(4);
    const std::vector<Problem> problems = value_illegalities(request, space);
    const bool of_one = std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
      return problem.where == "tensor_parallel" || problem.where == "pipeline_parallel" ||
             problem.where == "context_parallel";
    });
    if (of_one) RC_ASSERT(strategies(request, space).empty());
  }));
}

}  // namespace
}  // namespace headroom
