// What each release of a training stack has, by its name, its tag or a day.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/io/remarks.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/plan/plan.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

std::string stack_name(const std::string& text) { return read_software(text).name; }

TEST_CASE("releases: a name, a tag, a day or a month means a release, a family its last one") {
  CHECK(stack_name("megatron-bridge@26.04") == "megatron-bridge@26.04");
  CHECK(stack_name("megatron-bridge@v0.4.0") == "megatron-bridge@26.04");
  CHECK(stack_name("megatron-bridge@v0.4.1") == "megatron-bridge@26.04");
  CHECK(stack_name("megatron-bridge@2026-04-15") == "megatron-bridge@26.02.01");
  CHECK(stack_name("megatron-bridge@2026-04-16") == "megatron-bridge@26.04");
  CHECK(stack_name("megatron-bridge@2026-04") == "megatron-bridge@26.04");
  CHECK(stack_name("Megatron_Bridge@26.04") == "megatron-bridge@26.04");
  CHECK(stack_name("megatron-bridge") == "megatron-bridge@26.08");
  CHECK(stack_name("megatron-lm@2021-04") == "megatron-lm@2021-04");
  CHECK(stack_name("megatron-lm@core_v0.14") == "megatron-lm@core_v0.14.0");
  CHECK(stack_name("mcore@core_v0.14.0") == "megatron-lm@core_v0.14.0");
  CHECK(stack_name("nemo@24.07") == "nemo@24.07");
  CHECK(stack_name("nemo-2025") == "nemo-2025");
  CHECK(read_software("nemo-2025").released == std::nullopt);
  CHECK(read_software("megatron-bridge@26.04").released == "2026-04-16");
}

TEST_CASE("releases: a name that is no release lists those that are") {
  CHECK(message_of([] { return read_software("torchtitan@v0.3.0"); }) ==
        "torchtitan@v0.3.0: is no release of torchtitan: v0.1.0, v0.2.0, v0.2.1, v0.2.2; or a day such as "
        "2026-02-20");
  CHECK(
      message_of([] { return read_software("torchtitan@2024-01-01"); }) ==
      "torchtitan@2024-01-01: is before the first release of torchtitan that is known: v0.1.0 of 2025-06-17");
  CHECK(
      message_of([] { return read_software("pytorch@2.9"); }) ==
      "pytorch@2.9: 'pytorch' is no family of releases: accelerate, deepspeed, megatron-bridge, megatron-lm, "
      "nemo, torchtitan");
}

TEST_CASE("releases: how a family or a day was read is told") {
  CHECK(remarks_on("software", "torchtitan@v0.2.2").empty());
  CHECK(
      remarks_on("software", "torchtitan@2025-11-01") ==
      std::vector<std::string>{"torchtitan@2025-11-01 is read as torchtitan@v0.2.0, released on 2025-10-17"});
}

TEST_CASE("releases: a release has what earlier ones changed") {
  const auto has = [](const char* stack, Precision precision) {
    const auto precisions = read_software(stack).precisions;
    return std::find(precisions.begin(), precisions.end(), precision) != precisions.end();
  };
  CHECK(has("megatron-lm@23.04", Precision::fp8_delayed));
  CHECK_FALSE(has("megatron-lm@2022-05", Precision::fp8_delayed));
  CHECK(has("megatron-lm@core_v0.16.0", Precision::nvfp4));  // since core_v0.15.0
  CHECK_FALSE(has("megatron-lm@core_v0.14.0", Precision::nvfp4));
  CHECK(has("megatron-bridge@26.08", Precision::nvfp4));
  CHECK_FALSE(has("megatron-bridge@25.09", Precision::nvfp4));
  CHECK(read_software("nemo@24.07").gradient_dtype == Dtype::fp32);
  CHECK(read_software("nemo@2.4.0").gradient_dtype == Dtype::bf16);
  CHECK(read_software("megatron-bridge@26.04").gradient_dtype == Dtype::bf16);
  CHECK(read_software("megatron-bridge@26.04", {"gradient_dtype=fp32"}).gradient_dtype == Dtype::fp32);
}

TEST_CASE("releases: what a release lacks is refused by its name") {
  const Transformer model = read_model("gpt3-175b");
  const auto refused = [&](const char* stack, const Strategy& strategy) {
    const Request request{.model = model,
                          .system = {},
                          .software = read_software(stack),
                          .strategy = strategy,
                          .workload = {.global_batch = 64, .sequence = 2048}};
    const std::vector<Problem> problems = stack_illegalities(request.software, strategy);
    return problems.empty() ? "" : problems.front().where;
  };
  Strategy strategy{.tensor_parallel = 2, .sequence_parallel = true};
  CHECK(refused("megatron-lm@2021-04", strategy) == "sequence_parallel");
  CHECK(refused("megatron-lm@2022-05", strategy) == "");
  strategy = {.recompute = {.policy = RecomputePolicy::selective}};
  CHECK(refused("megatron-lm@v2.5", strategy) == "recompute");
  CHECK(refused("megatron-lm@2022-05", strategy) == "");
  CHECK(refused("megatron-2021", strategy) == "");  // no release: as before
  strategy = {.data_parallel = 2, .data_sharding = DataSharding::zero3};
  CHECK(refused("nemo@2.2.0", strategy) == "data_sharding");
  CHECK(refused("nemo@2.3.0", strategy) == "");
  strategy = {.offload = {.layers = 2}};
  CHECK(refused("megatron-lm@core_v0.4.0", strategy) == "offload_layers");
  CHECK(refused("megatron-lm@core_v0.5.0", strategy) == "");
}

TEST_CASE("releases: each is a stack whose defaults are legal, and is written as it was read") {
  const Transformer model = read_model("llama-3-8b");
  for (const StackFamily& family : list_families()) {
    CAPTURE(family.name);
    CHECK(parse_releases(write_releases(family), family.name + ".json") == family);
    for (std::size_t i = 0; i < family.releases.size(); ++i) {
      const Software software = software_of(family, i);
      CAPTURE(software.name);
      CHECK(software.released == family.releases[i].date);
      CHECK(read_software(software.name) == software);
      CHECK(read_software(family.name + "@" + family.releases[i].date).released == software.released);
      for (const std::string& tag : family.releases[i].tags)
        CHECK(read_software(family.name + "@" + tag) == software);
      Strategy strategy = with_stack_defaults({.data_parallel = 8}, software, model);
      strategy.data_sharding = least_sharding(software);
      CHECK(stack_illegalities(software, strategy).empty());
    }
  }
}

TEST_CASE("releases: mistakes of a file are named where they stand") {
  const auto parsed = [](const std::string& releases) {
    return message_of([&] {
      return parse_releases(R"({"format": 1, "source": "s", "releases": [)" + releases + "]}", "my.json");
    });
  };
  CHECK(parsed("") == "my.json: /releases: must list at least one release");
  CHECK(parsed(R"({"name": "1", "date": "2026-01-01", "source": "s"})") ==
        "my.json: /releases/0/stack: is missing");
  CHECK(parsed(R"({"name": "1", "date": "May", "stack": "nemo-2025", "source": "s"})") ==
        "my.json: /releases/0/date: must be a day such as 2026-04-16");
  const std::string first = R"({"name": "1", "date": "2026-01-02", "stack": "nemo-2025", "source": "s"},)";
  CHECK(parsed(first + R"({"name": "1", "date": "2026-01-03", "source": "s"})") ==
        "my.json: /releases/1/name: is the name or tag of an earlier release");
  CHECK(parsed(first + R"({"name": "2", "date": "2026-01-01", "source": "s"})") ==
        "my.json: /releases/1/date: must not be earlier than the release before it");
  CHECK(contains(parsed(first + R"({"name": "2", "date": "2026-01-02", "set": {"launches": "fast"},
                            "source": "s"})"),
                 "my.json: /releases/1/set/launches: "));
}

}  // namespace
}  // namespace headroom
