// Published runs against predictions: the targets for the development rows of shared/data/measured/runs.json.
// Some rates are fitted to some of these rows; docs/validation.md says which.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/runs_file.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct Outcome {
  std::vector<GroupSummary> groups;
  std::vector<SkippedRun> skipped;
};

Outcome outcome_of(const std::filesystem::path& file) {
  RunCases cases = cases_of(read_runs(file.string()), std::nullopt, std::nullopt);
  const auto& [measured, targets] = cases.measurements;
  return {summarize(compare(measured, targets), targets), std::move(cases.skipped)};
}

const GroupSummary& group(const Outcome& outcome, const std::string& name) {
  const auto found = std::find_if(outcome.groups.begin(), outcome.groups.end(),
                                  [&](const GroupSummary& it) { return it.group == name; });
  REQUIRE(found != outcome.groups.end());
  return *found;
}

}  // namespace

TEST_CASE("published runs: iteration times and memory meet their targets") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  const Outcome outcome = outcome_of(*file);

  CHECK(group(outcome, "SC21").rows == 6);
  CHECK(group(outcome, "SC21").worst_absolute <= 0.06);
  CHECK(group(outcome, "vTrain multi-node").rows == 41);
  CHECK(group(outcome, "vTrain multi-node").median_absolute <= 0.08);
  CHECK(group(outcome, "vTrain single-node").rows == 33);
  CHECK(group(outcome, "vTrain single-node").median_absolute <= 0.10);
  CHECK(group(outcome, "BLOOM").rows == 66);
  CHECK(group(outcome, "BLOOM").median_absolute <= 0.08);
  CHECK(group(outcome, "Zero Bubble").rows == 12);
  CHECK(group(outcome, "Zero Bubble").worst_absolute <= 0.08);
  CHECK(group(outcome, "Zero Bubble, memory").rows == 12);
  CHECK(group(outcome, "Zero Bubble, memory").worst_absolute <= 0.05);
  for (const GroupSummary& it : outcome.groups) {
    CAPTURE(it.group);
    CHECK(it.met);
  }
}

TEST_CASE("published runs: what is not predicted is skipped with a reason") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  const Outcome outcome = outcome_of(*file);
  CHECK(outcome.skipped.size() == 473 - 6 - 41 - 33 - 66 - 12);
  CHECK(std::none_of(outcome.skipped.begin(), outcome.skipped.end(),
                     [](const SkippedRun& run) { return run.reason.empty(); }));
}

}  // namespace headroom
