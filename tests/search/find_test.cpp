// Inverse questions against trying every value.
#include "headroom/search/find.hpp"

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/search/search.hpp"
#include "search/requests.hpp"

namespace headroom {
namespace {

bool holds(const Request& base, const Space& space, const Question& question, std::int64_t value) {
  Request request = base;
  Space part = space;
  put(question.extreme, value, request, part);
  const SearchResult result = search(request, part);
  if (result.plans.empty() || result.plans.front().verdict != Verdict::fits) return false;
  return !question.within || result.plans.front().iteration <= *question.within;
}

std::optional<std::int64_t> largest_by_trying(const Request& base, const Space& space,
                                              const Question& question) {
  for (std::int64_t value = question.most / question.step * question.step; value > 0;
       value -= question.step) {
    if (holds(base, space, question, value)) return value;
  }
  return {};
}

TEST_CASE("find: the fewest devices are those of trying every count") {
  CHECK(rc::check([] {
    Request request = small_request();
    if (*rc::gen::arbitrary<bool>()) request.system.devices_per_host = 4;
    const Space space = small_space();
    Question question{.extreme = Extreme::min_devices, .most = 24};
    if (*rc::gen::arbitrary<bool>()) question.within = Seconds(*rc::gen::inRange(1, 100) * 1e-3);
    std::optional<std::int64_t> fewest;
    const std::int64_t host = host_size(request.system);
    for (std::int64_t devices = 1; devices <= question.most && !fewest; ++devices) {
      if (devices < host ? host % devices == 0 : devices % host == 0) {
        if (holds(request, space, question, devices)) fewest = devices;
      }
    }
    RC_ASSERT(find(request, space, question).value == fewest);
  }));
}

TEST_CASE("find: the longest sequence is that of trying every length") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const Question question{
        .extreme = Extreme::max_sequence, .step = *rc::gen::element<std::int64_t>(5, 12, 64), .most = 700};
    RC_ASSERT(find(request, space, question).value == largest_by_trying(request, space, question));
  }));
}

TEST_CASE("find: longer sequences are divided over more ranks, as a search of that length does") {
  Request request{.model = with_layers(read_model("llama-3-8b"), 4),
                  .system = read_system("dgx-h100-80g"),
                  .strategy = {},
                  .workload = {.global_batch = 4, .sequence = 8192}};
  request.software = read_software("megatron-core-2025");
  const Space space{.devices = 16, .virtual_pipeline = {.only = {1}}};
  Question question{.extreme = Extreme::max_sequence, .step = usual_sequence_step};
  const std::optional<std::int64_t> longest = find(request, space, question).value;
  REQUIRE(longest);
  Space any = space;
  any.context_parallel.most = 16;
  CHECK(longest == find(request, any, question).value);
  Space undivided = space;
  undivided.context_parallel.most = 1;
  CHECK(*longest > *find(request, undivided, question).value);
  CHECK(holds(request, space, question, *longest));
  CHECK_FALSE(holds(request, space, question, *longest + usual_sequence_step));
  // With a time to keep to, every length is looked at anew.
  question.within = Seconds(1e9);
  CHECK(longest == find(request, space, question).value);
}

TEST_CASE("find: the deepest model is that of trying every depth") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    const Question question{
        .extreme = Extreme::max_layers, .step = *rc::gen::element<std::int64_t>(1, 2, 3), .most = 40};
    RC_ASSERT(find(request, space, question).value == largest_by_trying(request, space, question));
  }));
}

// Layers of a second kind among those of the first, as a list of runs that need not repeat.
Request small_request_of_kinds() {
  Request request = small_request();
  Transformer& model = request.model;
  LayerDescription wide = own_layer(model);
  wide.name = "wide";
  wide.feedforward *= *rc::gen::element<std::int64_t>(2, 6);
  model.layer_kinds = {own_layer(model), wide};
  model.layer_runs.clear();
  model.layers = 0;
  const auto runs = *rc::gen::inRange<std::size_t>(2, 6);
  for (std::size_t run = 0; run < runs; ++run) {
    model.layer_runs.push_back({run % 2, *rc::gen::inRange<std::int64_t>(1, 4)});
    model.layers += model.layer_runs.back().count;
  }
  return request;
}

TEST_CASE("find: the deepest model of several kinds of layers is that of trying every depth") {
  CHECK(rc::check([] {
    const Request request = small_request_of_kinds();
    const Space space = small_space();
    const Question question{
        .extreme = Extreme::max_layers, .step = *rc::gen::element<std::int64_t>(1, 2, 3), .most = 24};
    RC_ASSERT(find(request, space, question).value == largest_by_trying(request, space, question));
  }));
}

TEST_CASE("find: the largest batch is that of trying every batch") {
  CHECK(rc::check([] {
    const Request request = small_request();
    const Space space = small_space();
    Question question{
        .extreme = Extreme::max_batch, .step = *rc::gen::element<std::int64_t>(1, 2, 3), .most = 40};
    if (*rc::gen::arbitrary<bool>()) question.within = Seconds(*rc::gen::inRange(1, 100) * 1e-3);
    RC_ASSERT(find(request, space, question).value == largest_by_trying(request, space, question));
  }));
}

Request gpt3(std::int64_t batch) {
  Request request{.model = read_model("gpt3-175b"), .system = read_system("dgx-a100-80g")};
  request.workload = {.global_batch = batch, .sequence = request.model.sequence};
  return request;
}

TEST_CASE(
    "find: schedules that take microbatches at both ends, or in a V, are tried with every number of them") {
  Request request{.model = read_model("gpt3-13b", {"layers=4"}), .system = read_system("dgx-a100-80g")};
  request.workload.sequence = 64;
  for (const ScheduleKind schedule : {ScheduleKind::dualpipe, ScheduleKind::dualpipe_v}) {
    const bool in_v = schedule == ScheduleKind::dualpipe_v;
    const Space space{.devices = 2,
                      .tensor_parallel = {.only = {1}},
                      .pipeline_parallel = {.only = {2}},
                      .virtual_pipeline = {.only = {in_v ? 2 : 1}},
                      .micro_batch = {.only = {1}},
                      .schedules = {schedule}};
    const Question question{.extreme = Extreme::max_batch, .most = 11};
    CHECK(find(request, space, question).value == (in_v ? 11 : 10));
    CHECK(largest_by_trying(request, space, question) == (in_v ? 11 : 10));
  }
}

TEST_CASE("find: accumulating gradients leaves the batch without a bound, and the microbatch with one") {
  const Request request = gpt3(64);
  const Found found = find(request, {.devices = 64}, {.extreme = Extreme::max_batch});
  REQUIRE(found.micro_batch.has_value());
  const auto fits = [&](std::int64_t b) {
    Request asked = request;
    asked.workload.global_batch = 64 * b;
    const SearchResult result = search(asked, {.devices = 64, .micro_batch = {.only = {b}}});
    return !result.plans.empty() && result.plans.front().verdict == Verdict::fits;
  };
  CHECK(fits(*found.micro_batch));
  CHECK(!fits(*found.micro_batch + 1));
}

TEST_CASE("find: what fits at no value has none") {
  Request request = gpt3(64);
  request.system.memory = 4_GiB;
  for (const Extreme extreme : {Extreme::max_batch, Extreme::max_sequence, Extreme::max_layers}) {
    CHECK(!find(request, {.devices = 8}, {.extreme = extreme}).value);
  }
  CHECK(!find(request, {}, {.extreme = Extreme::min_devices, .most = 512}).value);
}

TEST_CASE("find: within a time needs a system whose performance is known") {
  Request request = gpt3(64);
  request.system.performance.reset();
  CHECK_THROWS_AS(find(request, {}, {.within = Seconds(1)}), InputError);
}

}  // namespace
}  // namespace headroom
