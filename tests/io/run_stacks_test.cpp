// Of which stack a run is, and what the stack makes of it.
#include <algorithm>

#include <doctest/doctest.h>

#include "calibrate/own_run.hpp"
#include "headroom/calibrate/measured_run.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/software_file.hpp"

namespace headroom {
namespace {

TEST_CASE("a run is of the stack whose words its software has, and no two stacks share a run") {
  const std::vector<Software> stacks = list_software();
  for (const Software& software : stacks) {
    for (const std::string& words : software.runs_of) {
      CHECK(stack_of_runs(stacks, words) == software.name);
      CHECK(std::count_if(stacks.begin(), stacks.end(), [&](const Software& other) {
              return stack_of_runs({other}, words).has_value();
            }) == 1);
    }
  }
  const std::vector<Software> own{{.name = "a-stack", .runs_of = {"Trainer 2.0"}}};
  CHECK(stack_of_runs(own, "Trainer of May, version 2.0") == "a-stack");
  CHECK_FALSE(stack_of_runs(own, "Trainer of May, version 3.0"));
  CHECK_FALSE(stack_of_runs(own, ""));
}

TEST_CASE("a run is of the release that its software names by itself") {
  const std::vector<StackFamily> families = list_families();
  CHECK(release_of_runs(families, "NeMo 24.07") == "nemo@24.07");
  CHECK(release_of_runs(families, "26.04.01 NeMo Container") == "megatron-bridge@26.04.01");
  CHECK_FALSE(release_of_runs(families, "NeMo 24.09/24.12/25.x"));
  CHECK_FALSE(release_of_runs(families, "NeMo 24.07 and 24.09"));
  CHECK_FALSE(release_of_runs(families, "a trainer 24.07"));
  CHECK_FALSE(release_of_runs(families, ""));
  const Software nemo = read_software("nemo@24.07");
  CHECK(nemo.optimizer.main_params == MainParams::remainder);
  CHECK(read_software("nemo@24.12").optimizer.main_params == MainParams::fp32);
}

TEST_CASE("a run is held to what its own stack runs, whether or not a system has its GPU") {
  MeasuredRun run = tests::own_run();
  run.pipeline_parallel = run.micro_batch = 1;
  run.stack = "kempnerforge-2026";
  run.settings.tied_embeddings = true;
  const std::string rule = "sequence_parallel must be off on the stack kempnerforge-2026";
  for (const char* const device : {"H100", "V100-SXM2-32GB"}) {
    run.device = device;
    const RunCases cases = cases_of({run}, std::nullopt, std::nullopt);
    REQUIRE(cases.skipped.size() == 1);
    CHECK(cases.skipped.front().reasons.front().starts_with(rule));
  }
  CHECK(reasons_to_skip(run, nullptr, read_software("megatron-2022")).empty());
}

}  // namespace
}  // namespace headroom
