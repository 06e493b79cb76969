#include <doctest/doctest.h>

#include "headroom/io/catalog.hpp"
#include "headroom/io/measurements_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

const char* const small = R"({
  "format": 1, "source": "a paper", "system": "dgx-a100-80g", "software": "megatron-2022",
  "cases": [
    {"source": "table", "name": "slow", "model": "gpt-22b", "global_batch": 4,
     "strategy": {"tensor_parallel": 8, "pipeline_parallel": 1, "virtual_pipeline": 1, "data_parallel": 1,
                  "micro_batch": 4, "sequence_parallel": false, "recompute": "full"},
     "measured": {"iteration": "1.42 s", "iteration_rounding": "5 ms", "mfu_at_measured_percent": 32}}],
  "targets": [{"group": "times", "source": "table", "quantity": "iteration_seconds", "worst_percent": 5}]
})";

std::string measurements_mistake(const std::string& part, const std::string& replacement) {
  return message_of([&] { return parse_measurements(with(small, part, replacement), "m.json"); });
}

}  // namespace

TEST_CASE("a measurements file gives cases with their requests, and targets in parts of one") {
  const Measurements read = parse_measurements(small, "m.json");
  REQUIRE(read.cases.size() == 1);
  CHECK(read.cases[0].request.model.name == "gpt-22b");
  CHECK(read.cases[0].request.strategy.recompute.policy == RecomputePolicy::full);
  CHECK(read.cases[0].figures ==
        std::vector<Figure>{{.measure = Measure::iteration_seconds, .value = 1.42, .rounding = 0.005},
                            {.measure = Measure::mfu_at_measured, .value = 0.32}});
  REQUIRE(read.targets.size() == 1);
  CHECK(read.targets[0].worst == 0.05);
}

TEST_CASE("mistakes of a measurements file are named by their field") {
  CHECK(measurements_mistake("\"source\": \"a paper\",", "") == "m.json: /source: is missing");
  CHECK(contains(measurements_mistake("gpt-22b", "gpt-23b"),
                 "m.json: /cases/0/model: gpt-23b is neither a file"));
  CHECK(contains(measurements_mistake("dgx-a100-80g", "dgx"), "m.json: /system: dgx is neither"));
  CHECK(contains(measurements_mistake("1.42 s", "1.42"), "m.json: /cases/0/measured/iteration"));
  CHECK(contains(measurements_mistake("\"tensor_parallel\": 8", "\"tensor_parallel\": 7"),
                 "m.json: /cases/0/strategy: tensor_parallel must divide the attention heads"));
  CHECK(contains(measurements_mistake("\"full\"", "\"ops\""),
                 "/strategy/recompute: must be none or selective or selective_op or full"));
  CHECK(measurements_mistake("\"recompute\"", "\"distributed_optimizer\": true, \"recompute\"") ==
        "m.json: /cases/0/strategy/distributed_optimizer: is data_sharding now: \"zero1\" where it was true, "
        "\"none\" where it was false");
  CHECK(contains(measurements_mistake("worst_percent", "worst"), "/targets/0/worst: unknown key"));
  CHECK(measurements_mistake("\"iteration\": \"1.42 s\", ", "") ==
        "m.json: /cases/0/measured/iteration: is missing beside a utilization at it");
  CHECK(measurements_mistake("\"mfu_at_measured_percent\"", "\"gain_percent\"") ==
        "m.json: /cases/0/baseline: is missing beside a ratio to it");
  CHECK(measurements_mistake("\"model\"", "\"baseline\": \"fast\", \"model\"") ==
        "m.json: /cases/0/baseline: must be the name of a case of the source");
}

TEST_CASE("K22's tables are built in") {
  CHECK(embedded_names("measurement") == std::vector<std::string_view>{"k22"});
  CHECK(embedded_measurements().cases.size() == 5 + 8 + 2);
}

}  // namespace headroom
