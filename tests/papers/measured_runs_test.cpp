// Published runs against predictions: the rows that are part of the repository (published_runs.json beside this file), and
// where they are at hand the development rows of shared/data/measured/runs.json, against the targets of their sources.
// Some rates are fitted to some of these rows; docs/validation.md says which.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "headroom/io/measurements_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct Outcome {
  std::vector<GroupSummary> groups;
  std::vector<SkippedRun> skipped;
};

Outcome outcome_of(const std::vector<MeasuredRun>& runs) {
  RunCases cases = cases_of(runs, std::nullopt, std::nullopt);
  const auto& [measured, targets] = cases.measurements;
  return {summarize(compare(measured, targets, embedded_spreads()), targets), std::move(cases.skipped)};
}

// The collection was written without keys: they follow from its titles.
Outcome outcome_of_collection(const std::filesystem::path& file) {
  std::vector<MeasuredRun> runs = read_runs(file.string());
  std::vector<SkippedRun> skipped = take_keys_by_title(runs);
  Outcome outcome = outcome_of(runs);
  outcome.skipped.insert(outcome.skipped.end(), skipped.begin(), skipped.end());
  return outcome;
}

const GroupSummary& group(const Outcome& outcome, const std::string& name) {
  const auto found = std::find_if(outcome.groups.begin(), outcome.groups.end(),
                                  [&](const GroupSummary& it) { return it.group == name; });
  REQUIRE(found != outcome.groups.end());
  return *found;
}

}  // namespace

SHARED_TEST_CASE("published runs: iteration times and memory meet their targets") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  const Outcome outcome = outcome_of_collection(*file);

  CHECK(group(outcome, "SC21").rows == 6);
  CHECK(group(outcome, "SC21").worst_absolute <= 0.06);
  CHECK(group(outcome, "vTrain multi-node").rows == 41);
  CHECK(group(outcome, "vTrain multi-node").median_absolute <= 0.08);
  CHECK(group(outcome, "vTrain single-node").rows == 33);
  CHECK(group(outcome, "vTrain single-node").median_absolute <= 0.10);
  CHECK(group(outcome, "BLOOM").rows == 66);
  CHECK(group(outcome, "BLOOM").median_absolute <= 0.08);
  CHECK(group(outcome, "Zero Bubble").rows == 24);
  CHECK(group(outcome, "Zero Bubble").worst_absolute <= 0.08);
  CHECK(group(outcome, "Zero Bubble, memory").rows == 24);
  CHECK(group(outcome, "Zero Bubble, memory").worst_absolute <= 0.05);
  for (const GroupSummary& it : outcome.groups) {
    CAPTURE(it.group);
    CHECK(it.met);
  }
}

SHARED_TEST_CASE("published runs: what is not predicted is skipped with a reason") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  const Outcome outcome = outcome_of_collection(*file);
  CHECK(outcome.skipped.size() == 473 - 6 - 41 - 33 - 66 - 24);
  CHECK(std::none_of(outcome.skipped.begin(), outcome.skipped.end(),
                     [](const SkippedRun& run) { return run.reasons.empty(); }));
}

SHARED_TEST_CASE("runs of other hardware: masks of experts explain what capacities of 1.25, 2 and 4 cost") {
  const auto file = tests::shared_file("data/measured/runs_hardware.json");
  if (!file) return;
  std::vector<MeasuredRun> runs = read_runs(file->string());
  std::erase_if(runs, [](const MeasuredRun& run) { return !run.name.starts_with("mt-k2-dense-cf"); });
  CHECK(runs.size() == 24);
  const Outcome outcome = outcome_of(runs);  // nothing was fitted to them
  REQUIRE(outcome.groups.size() == 1);
  CHECK(outcome.groups.front().rows == 24);
  CHECK(outcome.groups.front().worst_absolute <= 0.10);
  CHECK(std::abs(outcome.groups.front().mean) <= 0.05);
}

SHARED_TEST_CASE(
    "runs of 2026: all are read, and what is not predicted is skipped by the name of what is missing") {
  const auto file = tests::shared_file("data/measured/runs_2026.json");
  if (!file) return;
  const std::vector<MeasuredRun> runs = read_runs(file->string());
  CHECK(runs.size() == 677);
  const RunCases made = cases_of(runs, std::nullopt, std::nullopt);
  CHECK(made.measurements.cases.size() + made.skipped.size() == runs.size());
  CHECK(made.measurements.cases.size() >= 214);
  for (const SkippedRun& run : made.skipped) {
    CAPTURE(run.name);
    REQUIRE_FALSE(run.reasons.empty());
    for (const std::string& reason : run.reasons) {
      CAPTURE(reason);
      CHECK((reason.starts_with("not modelled yet: ") || reason.starts_with("not stated: ") ||
             reason.starts_with("no system has its GPU, ") || reason.find(" must ") != std::string::npos));
    }
  }
}

// Measured by us: PyTorch 2.11, transformers 5.17 and peft on one H100 (docs/memory.md).
TEST_CASE("runs of Trainer on one GPU: peaks are met within 1%, compiled ones within 5%") {
  const RunCases made = cases_of(read_runs((tests::source_dir() / "tests/papers/trainer_runs.json").string()),
                                 std::nullopt, std::nullopt);
  CHECK(made.skipped.empty());
  const auto& [measured, targets] = made.measurements;
  int peaks = 0;
  for (const Comparison& it : compare(measured, targets, embedded_spreads())) {
    if (it.measure != Measure::allocated_bytes) continue;
    CAPTURE(it.name);
    const bool compiled = it.name.find("compiled") != std::string::npos;
    CHECK(std::abs(it.error) <= (compiled ? 0.05 : 0.01));
    ++peaks;
  }
  CHECK(peaks == 22);
}

TEST_CASE("published runs of the repository: each source meets its targets") {
  const std::vector<MeasuredRun> runs =
      read_runs((tests::source_dir() / "tests/papers/published_runs.json").string());
  const Outcome outcome = outcome_of(runs);
  CHECK(outcome.skipped.empty());
  std::size_t rows = 0;
  for (const PublishedSource& source : list_sources()) {
    CAPTURE(source.key);
    if (source.targets.empty()) continue;  // no rows of these are here
    const GroupSummary& times = group(outcome, source.label);
    CHECK(times.target.has_value());
    CHECK(times.met);
    CHECK(times.worst_absolute > 0);
    rows += times.rows;
  }
  CHECK(rows == runs.size());
  CHECK(group(outcome, "Zero Bubble, memory").met);
}

TEST_CASE("published runs of the repository: those of K22 table 5 are the built-in cases") {
  std::vector<MeasuredRun> runs =
      read_runs((tests::source_dir() / "tests/papers/published_runs.json").string());
  std::erase_if(runs, [](const MeasuredRun& run) { return run.key != "k22-table5"; });
  const RunCases made = cases_of(runs, std::nullopt, std::nullopt);
  const auto plan_of = [](const MeasuredCase& it) { return account(evaluate(it.request)); };
  std::size_t matched = 0;
  for (const MeasuredCase& built_in : embedded_measurements().cases) {
    if (built_in.source != "K22 table 5") continue;
    for (const MeasuredCase& run : made.measurements.cases) {
      if (run.name != "K22 table 5, " + built_in.name) continue;
      ++matched;
      CHECK(plan_of(run).timing->iteration.total == plan_of(built_in).timing->iteration.total);
      CHECK(run.figures.front().value == built_in.figures.front().value);
    }
  }
  CHECK(matched == 8);
}

}  // namespace headroom
