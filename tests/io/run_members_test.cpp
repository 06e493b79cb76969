// Runs that are left out, and members that are read or named.
#include <doctest/doctest.h>

#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "least_run.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

using tests::minimal;
using tests::mistakes_in;

// In four virtual stages of two ranks, unless it says otherwise.
std::string laid(const std::string& layout, const std::string& more = "") {
  return with(minimal, "\"pp\": 2", "\"pp\": 2, \"layout\": \"" + layout + "\"" + more);
}

}  // namespace

TEST_CASE("a mistake is its run's alone, and the other runs are predicted") {
  const std::string run(minimal + 1, std::string_view(minimal).size() - 2);  // without the list's brackets
  const std::string unknown = with(run, "\"measured\"", "\"derived\": {\"how_much\": 3}, \"measured\"");
  const std::string named_wrong = with(run, "\"recompute\"", "\"source\": {\"key\": \"sc2\"}, \"recompute\"");
  const std::string twice = with(run, "\"tp\": 1", "\"tp\": 1, \"tp\": 2");
  const std::string nameless = with(run, "\"id\": \"mine\", ", "");
  const std::string text =
      "[" + unknown + "," + run + "," + named_wrong + "," + twice + "," + nameless + ", 3]";
  const std::vector<MeasuredRun> runs = parse_runs(text, "r.json");
  REQUIRE(runs.size() == 6);
  CHECK(runs[0].mistakes == std::vector<Problem>{{"/derived/how_much", "unknown key"}});
  CHECK(runs[1].mistakes.empty());
  CHECK(runs[3].mistakes == std::vector<Problem>{{"/parallel/tp", "is given twice"}});
  CHECK(runs[4].name == "/4");
  CHECK(runs[5].mistakes == std::vector<Problem>{{"", "must be an object (found 3)"}});
  const RunCases cases = cases_of(runs, std::nullopt, std::nullopt);
  CHECK(cases.measurements.cases.size() == 1);
  REQUIRE(cases.skipped.size() == 5);
  CHECK(cases.skipped[0].name == "mine");
  CHECK(text_of(cases.skipped[0]) == "/derived/how_much: unknown key");
  CHECK(text_of(cases.skipped[3]) == "/id: is missing");
  CHECK(text_of(cases.skipped[4]) == "must be an object (found 3)");
  const ChosenRuns chosen = choose_runs(runs, {}, "dgx-a100-80g", std::nullopt);
  CHECK(chosen.fitted.size() == 1);
  CHECK(chosen.skipped == cases.skipped);
  CHECK_THROWS_AS(choose_runs(runs, {"/4"}, "dgx-a100-80g", std::nullopt), InputError);
}

TEST_CASE("a fit leaves out what was marked and cannot be fitted, and the second run of a name") {
  std::vector<MeasuredRun> runs(4, parse_runs(minimal, "r.json").front());
  for (MeasuredRun& run : runs) run.fit = true;
  runs[1].device = "NVIDIA H200";
  runs[3].name = "in milliseconds";
  runs[3].iteration = Seconds(1230);
  const ChosenRuns chosen = choose_runs(runs, {}, "dgx-a100-80g", std::nullopt);
  CHECK(chosen.fitted.size() == 1);
  REQUIRE(chosen.skipped.size() == 3);
  CHECK(text_of(chosen.skipped[0]) == "it is of NVIDIA H200, and dgx-a100-80g has A100-SXM4-80GB");
  CHECK(text_of(chosen.skipped[1]) == "an earlier run has its name");
  CHECK(contains(text_of(chosen.skipped[2]), "took 1230 s and can take at most"));
}

TEST_CASE("the layout of a run is that of its virtual stages, of which there are as many as it has") {
  const MeasuredRun run = parse_runs(laid("Et*5|t*7|t*7|t*5L"), "r.json").front();
  CHECK(run.mistakes.empty());
  CHECK(run.stage_layers == std::vector<std::int64_t>{5, 7, 7, 5});
  CHECK(run.virtual_pipeline == 2);
  CHECK(run.mtp_layers == 0);
  const RunCases cases = cases_of({run}, std::nullopt, "megatron-core-2025");
  REQUIRE(cases.measurements.cases.size() == 1);
  const Strategy& strategy = cases.measurements.cases[0].request.strategy;
  CHECK(strategy.stage_layers == run.stage_layers);
  CHECK(strategy.schedule == ScheduleKind::interleaved);
  CHECK(parse_runs(laid("even"), "r.json").front().stage_layers.empty());
}

TEST_CASE("the layers of multi-token prediction are those of the layout, or it is wrong") {
  const MeasuredRun run = parse_runs(laid("Et*12|t*12mL"), "r.json").front();
  CHECK(run.mtp_layers == 1);
  const std::string two =
      with(laid("Et*12|t*12mL"), "\"recompute\"", "\"moe_run\": {\"mtp_layers\": 2}, \"recompute\"");
  CHECK(mistakes_in(two) ==
        "r.json: /0/parallel/layout: must have an m for each of 2 layers of multi-token prediction, not 1");
  const MeasuredRun apart = parse_runs(laid("Et*12|t*12|m|L"), "r.json").front();
  CHECK(apart.unmodelled ==
        std::vector<std::string>{
            "a layout with multi-token prediction (m) in another stage than the loss (L)"});
}

TEST_CASE("a layout that is none, or is not of the run, is a mistake of the run") {
  CHECK(contains(mistakes_in(laid("nonsense")), "r.json: /0/parallel/layout: must be a layout such as"));
  CHECK(contains(mistakes_in(laid("nonsense")), "(found \"nonsense\")"));
  CHECK(
      mistakes_in(laid("Et*12|t*12L", ", \"vpp\": 2")) ==
      "r.json: /0/parallel/layout: must have a stage for each of 2 pipeline ranks x 2 virtual stages, not 2");
  CHECK(mistakes_in(laid("even", ", \"vpp\": 5")) ==
        "r.json: /0/parallel/layout: cannot be even with 24 layers on 10 virtual stages");
  // That its layers add up to the model's is a rule of every strategy.
  const RunCases cases =
      cases_of(parse_runs(laid("Et*12|t*11L"), "r.json"), std::nullopt, "megatron-core-2025");
  REQUIRE(cases.skipped.size() == 1);
  CHECK(contains(text_of(cases.skipped[0]), "stage_layers must add up to the 24 layers, not 23"));
}

TEST_CASE("overlap that a run states of weight gradients and shared experts is its stack's") {
  const std::string flags =
      with(minimal, "\"recompute\"",
           "\"overlap_flags\": {\"delay_wgrad\": true, \"shared_expert\": true}, \"recompute\"");
  const RunCases cases = cases_of(parse_runs(flags, "r.json"), std::nullopt, std::nullopt);
  REQUIRE(cases.measurements.cases.size() == 1);
  const Software& software = cases.measurements.cases[0].request.software;
  CHECK(software.delay_weight_gradients);
  CHECK(software.overlap_shared_experts);
}

TEST_CASE("members that no prediction depends on are counted by name") {
  const std::string one = with(minimal, "\"tp\": 1", "\"tp\": 1, \"nvlink_domain\": 72");
  const std::string both = with(one, "\"recompute\"", "\"optimizer\": {\"name\": \"adam\"}, \"recompute\"");
  std::vector<MeasuredRun> runs = parse_runs(both, "r.json");
  CHECK(runs[0].unread == std::vector<std::string>{"parallel.nvlink_domain", "optimizer.name"});
  runs.push_back(parse_runs(one, "r.json").front());
  runs.push_back(parse_runs(minimal, "r.json").front());
  CHECK(cases_of(runs, std::nullopt, std::nullopt).unread ==
        std::vector<UnreadMember>{{"parallel.nvlink_domain", 2}, {"optimizer.name", 1}});
}

}  // namespace headroom
