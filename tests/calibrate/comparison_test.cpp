#include "headroom/calibrate/comparison.hpp"

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/memory/reserves.hpp"

namespace headroom {
namespace {

// The first built-in case of a name.
MeasuredCase built_in(const std::string& name) {
  for (const MeasuredCase& it : embedded_measurements().cases) {
    if (it.name == name) return it;
  }
  FAIL("no case " << name);
  return {};
}

Comparison row(std::string group, double error) {
  return {.group = std::move(group), .measure = Measure::iteration_seconds, .error = error};
}

}  // namespace

TEST_CASE("the median of an even count is between the middle two") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({8, 1, 3, 5}) == 4);
}

TEST_CASE("an error at its tolerance is within it, whatever the last bit says") {
  CHECK(within(0.1 + 0.2, 0.3));
  CHECK(within(-0.05, 0.05));
  CHECK_FALSE(within(-0.0501, 0.05));
}

TEST_CASE("a summary counts absolute errors and their bias") {
  const std::vector<GroupSummary> groups = summarize({row("a", -0.04), row("b", 0.5), row("a", 0.02)}, {});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].group == "a");
  CHECK(groups[0].rows == 2);
  CHECK(groups[0].median_absolute == doctest::Approx(0.03));
  CHECK(groups[0].mean_absolute == doctest::Approx(0.03));
  CHECK(groups[0].mean == doctest::Approx(-0.01));
  CHECK(groups[0].worst_absolute == doctest::Approx(0.04));
  CHECK(groups[0].met);  // there is no target
}

TEST_CASE("a target is missed by its median, its mean or any row") {
  const std::vector<Comparison> rows{row("a", -0.01), row("a", 0.01), row("a", 0.10)};
  const auto met = [&](Target target, std::vector<Comparison> of) {
    target.group = "a";
    for (Comparison& it : of) it.tolerance = target.worst;
    return summarize(of, {target}).front().met;
  };
  CHECK(met({.median = 0.01}, rows));
  CHECK_FALSE(met({.median = 0.009}, rows));
  CHECK(met({.mean = 0.04}, rows));
  CHECK_FALSE(met({.mean = 0.039}, rows));
  CHECK(met({.worst = 0.10}, rows));
  CHECK_FALSE(met({.median = 0.01, .worst = 0.09}, rows));
}

TEST_CASE("times and bytes compare by ratio, utilizations by difference") {
  MeasuredCase it = built_in("175B, full recomputation");
  it.figures = {{.measure = Measure::iteration_seconds, .value = 20},
                {.measure = Measure::mfu, .value = 0.5},
                {.measure = Measure::device_bytes, .value = 1e9}};
  const std::vector<Comparison> rows = compare({it}, {}, embedded_spreads());
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].error == rows[0].predicted / 20 - 1);
  CHECK(rows[1].error == rows[1].predicted - 0.5);
  CHECK(rows[2].error == rows[2].predicted / 1e9 - 1);
  CHECK(rows[0].group == "K22 table 5");
  CHECK(rows[2].group == "K22 table 5, memory");
  CHECK(rows[0].fits);
  it.request.system.memory = Bytes(1e9);
  CHECK_FALSE(compare({it}, {}, embedded_spreads()).front().fits);
}

TEST_CASE("what a tensor allocator sees leaves reserves out") {
  MeasuredCase it = built_in("175B, full recomputation");
  it.figures = {{.measure = Measure::allocated_bytes, .value = 1},
                {.measure = Measure::reserved_bytes, .value = 1},
                {.measure = Measure::device_bytes, .value = 1}};
  const std::vector<Comparison> rows = compare({it}, {}, embedded_spreads());
  CHECK(rows[1].predicted > rows[0].predicted);
  CHECK(rows[2].predicted - rows[1].predicted ==
        reserved(it.request.system, it.request.software, it.request.strategy).count());
  CHECK(rows[1].group == "K22 table 5, reserved memory");
}

TEST_CASE("a utilization at a rounded time may differ by what the rounding allows") {
  MeasuredCase it = built_in("22B, present work");
  const std::vector<Target> targets{
      {.group = "g", .source = it.source, .measure = Measure::mfu_at_measured, .worst = 0.001}};
  it.baseline.clear();
  it.figures = {{.measure = Measure::iteration_seconds, .value = 2, .rounding = 0.1},
                {.measure = Measure::mfu_at_measured, .value = 0.2}};
  const Comparison at_measured = compare({it}, targets, embedded_spreads())[1];
  CHECK(at_measured.tolerance == doctest::Approx(0.001 + at_measured.predicted * 0.05));
}

TEST_CASE("rows without a target are grouped by traits too, those of a target by it alone") {
  MeasuredCase it = built_in("175B, full recomputation");
  it.figures = {{.measure = Measure::iteration_seconds, .value = 20},
                {.measure = Measure::device_bytes, .value = 1e9}};
  it.request.software.sharding = {.modes = {DataSharding::zero3}, .with_pipeline = true};
  it.request.strategy.data_sharding = DataSharding::zero3;
  const std::vector<Target> targets{
      {.group = "g", .source = it.source, .measure = Measure::iteration_seconds, .worst = 1}};
  const std::vector<RunTrait> traits{RunTrait::kind, RunTrait::model, RunTrait::precision};
  const std::vector<Comparison> rows = compare({it}, targets, embedded_spreads(), traits);
  CHECK(rows[0].group == "g");
  CHECK(rows[1].group == "K22 table 5, dense FSDP, " + it.request.model.name + ", 16 bits, memory");
}

TEST_CASE("an illegal request is named by its case") {
  MeasuredCase it = built_in("175B, full recomputation");
  it.request.strategy.tensor_parallel = 7;
  CHECK_THROWS_WITH_AS(compare({it}, {}, embedded_spreads()),
                       doctest::Contains("175B, full recomputation: tensor_parallel"), InputError);
}

}  // namespace headroom
