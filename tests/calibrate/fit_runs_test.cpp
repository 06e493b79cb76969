// Efficiencies recovered from iteration times that the model itself made, what is refused, and development rows.
#include "headroom/calibrate/fit_runs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <doctest/doctest.h>

#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/plan/interval.hpp"
#include "io/messages.hpp"
#include "paths.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::a100;
using tests::performance;

struct Layout {
  std::int64_t tensor = 1, data = 1, micro_batch = 1, hidden = 6144;
  bool flash = false;
};

MeasuredCase run(const std::string& name, const Layout& layout) {
  MeasuredRun it{.name = name,
                 .layers = 8,
                 .hidden = layout.hidden,
                 .heads = 48,
                 .vocabulary = 51200,
                 .sequence = 2048,
                 .tensor_parallel = layout.tensor,
                 .sequence_parallel = layout.tensor > 1,
                 .data_parallel = layout.data,
                 .global_batch = 4 * layout.data * layout.micro_batch,
                 .micro_batch = layout.micro_batch,
                 .recompute = "none",
                 .iteration = Seconds(1)};
  it.flash_attention = layout.flash;
  return std::get<MeasuredCase>(case_of(it, nullptr, a100(), tests::megatron()));
}

// Compute-bound, bound by memory traffic, and bound by the network.
std::vector<MeasuredCase> runs() {
  return {run("a", {.tensor = 8, .micro_batch = 4}),
          run("b", {.tensor = 2, .micro_batch = 1, .hidden = 3072}),
          run("c", {.tensor = 8, .data = 16, .micro_batch = 1, .hidden = 12288}),
          run("d", {.tensor = 4, .data = 8, .micro_batch = 1}),
          run("e", {.tensor = 1, .data = 8, .micro_batch = 2})};
}

// The times that the runs would take.
std::vector<MeasuredCase> measured(std::vector<MeasuredCase> runs, const Rates& truth) {
  for (MeasuredCase& it : runs) {
    Request request = it.request;
    request.system.performance->rates = truth;
    it.figures.front().value = account(evaluate(request)).timing->iteration.total.count();
  }
  return runs;
}

Rates changed_rates() {
  Rates truth = performance().rates;
  truth.products.sustained.value = 0.8;
  truth.network.shared_nic_efficiency.value = 0.7;
  return truth;
}

RunCalibration calibrated(const std::vector<MeasuredCase>& fitted,
                          const std::vector<MeasuredCase>& held_out = {}) {
  return calibrate_to_runs(fitted, held_out, a100(), embedded_spreads(), "log.json");
}
std::string mistake(const std::vector<MeasuredCase>& fitted) {
  return message_of([&] { return calibrated(fitted); });
}
bool warns(const RunCalibration& result, const std::string& part) {
  return std::any_of(result.warnings.begin(), result.warnings.end(),
                     [&](const std::string& warning) { return contains(warning, part); });
}

}  // namespace

TEST_CASE("calibrate to runs: efficiencies come back, and nothing else changes") {
  const RunCalibration result = calibrated(measured(runs(), changed_rates()));
  const Rates& rates = result.system.performance->rates;
  CHECK(result.fitted.size() <= 3);  // of five configurations
  CHECK(rates.products.sustained.value == doctest::Approx(0.8).epsilon(0.01));
  CHECK(rates.network.shared_nic_efficiency.value == doctest::Approx(0.7).epsilon(0.01));
  for (const RunError& run : result.runs) {
    CHECK(std::abs(run.before) > 0.02);
    CHECK(std::abs(run.after) < 0.005);
    CHECK(run.left_out.has_value());
  }
  CHECK(rates.products.sustained.origin == Origin::calibrated);
  CHECK(contains(rates.products.sustained.source, "the iteration time of 5 runs of log.json ('a', 'b', 'c'"));
  CHECK(rates.kernels == performance().rates.kernels);
  CHECK(rates.collectives == performance().rates.collectives);
  CHECK(rates.network.nic_efficiency == performance().rates.network.nic_efficiency);
  CHECK(parse_system(write_system(result.system), "a100.json").performance == result.system.performance);
  const RunSpread spread = result.system.performance->run_spread.value();
  CHECK(spread.origin == Origin::calibrated);
  CHECK(spread.configurations == 5);
  CHECK(spread.logarithm < result.spread_before);
  for (const RunError& run : result.runs) {
    CHECK(std::abs(std::log(1 + run.left_out.value())) <= spread.logarithm);  // of five, all
  }
}

TEST_CASE("calibrate to runs: no interval is narrower than what was held out, and errors widen it") {
  std::vector<MeasuredCase> noisy = measured(runs(), changed_rates());
  for (std::size_t i = 0; i < noisy.size(); ++i) noisy[i].figures.front().value *= i % 2 == 0 ? 1.15 : 0.87;
  const RunCalibration result = calibrated(noisy);
  const RunSpread spread = result.system.performance->run_spread.value();
  double widest = 0;
  for (const RunError& run : result.runs) {
    widest = std::max(widest, std::abs(std::log(1 + run.left_out.value())));
  }
  CHECK(spread.logarithm >= widest);
  CHECK(spread.logarithm < widest + 0.001);
  CHECK(spread.logarithm > result.spread_before);
  Request request = noisy.front().request;
  request.system = result.system;
  const IterationSpread of_request = iteration_spread(request, embedded_spreads());
  CHECK(of_request.rates == StepRates::own_runs);
  CHECK(of_request.spread.logarithm == spread.logarithm);
  // A model whose flash attention none of these runs has is as uncertain as before.
  request.model.architecture.kernels.attention = AttentionKernel::flash;
  CHECK(iteration_spread(request, embedded_spreads()).rates == StepRates::kernels);
}

TEST_CASE("calibrate to runs: one run tells one scalar, and nothing is held out") {
  const RunCalibration result = calibrated(measured({runs()[0]}, changed_rates()));
  REQUIRE(result.fitted.size() == 1);
  CHECK(result.fitted[0].name == "products.sustained");
  CHECK(result.fitted[0].before == performance().rates.products.sustained.value);
  CHECK(std::abs(result.runs[0].after) < 0.001);
  CHECK_FALSE(result.runs[0].left_out.has_value());
  CHECK(warns(result, "no run is held out"));
  // Nor is an interval told: it stays as wide as before.
  const RunSpread spread = result.system.performance->run_spread.value();
  CHECK(spread.origin == Origin::assumed);
  CHECK(spread.configurations == 0);
  CHECK(spread.logarithm == result.spread_before);
}

TEST_CASE("calibrate to runs: the scalars follow from configurations and not from times") {
  const auto names = [](const RunCalibration& result) {
    std::vector<std::string> all;
    for (const FittedRate& rate : result.fitted) all.push_back(rate.name);
    return all;
  };
  Rates other = performance().rates;
  other.streaming.bandwidth_share.value = 0.6;
  CHECK(names(calibrated(measured(runs(), changed_rates()))) == names(calibrated(measured(runs(), other))));
}

TEST_CASE("calibrate to runs: a repeated configuration is one configuration") {
  MeasuredCase again = runs()[0];
  again.name = again.request.model.name = "a again";
  const RunCalibration result = calibrated(measured({runs()[0], again}, changed_rates()));
  CHECK(result.fitted.size() == 1);
  CHECK_FALSE(result.runs[0].left_out.has_value());
  CHECK(warns(result, "no run is held out"));
}

TEST_CASE("calibrate to runs: an outlier bends the fit little") {
  std::vector<MeasuredCase> rows = measured(runs(), changed_rates());
  rows[4].figures.front().value *= 1.4;
  const Rates rates = calibrated(rows).system.performance->rates;
  CHECK(rates.products.sustained.value == doctest::Approx(0.8).epsilon(0.06));
}

TEST_CASE("calibrate to runs: held-out runs are judged, and may depend on what was not fitted") {
  const std::vector<MeasuredCase> rows = measured(runs(), changed_rates());
  const RunCalibration result = calibrated({rows[0]}, {rows[1], rows[2]});
  REQUIRE(result.runs.size() == 3);
  CHECK_FALSE(result.runs[1].fitted);
  CHECK(std::abs(result.runs[1].after) < std::abs(result.runs[1].before));
  CHECK(warns(result, "network.shared_nic_efficiency is kept from dgx-a100-80g"));
  CHECK(warns(result, "depend on it: 'c'"));
}

TEST_CASE("calibrate to runs: long sequences tell the clock of flash attention") {
  Rates truth = performance().rates;
  truth.flash_attention.sustained.value *= 0.5;
  std::vector<MeasuredCase> rows;
  for (const std::int64_t sequence : {2048, 4096, 8192, 16384}) {
    MeasuredCase it = run(std::to_string(sequence), {.hidden = 3072, .flash = true});
    it.request.workload.sequence = it.request.model.sequence = it.request.model.max_positions = sequence;
    rows.push_back(it);
  }
  const RunCalibration result = calibrated(measured(rows, truth));
  const FlashRates& found = result.system.performance->rates.flash_attention;
  const FlashRates& base = performance().rates.flash_attention;
  CHECK(found.sustained.value / base.sustained.value == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("calibrate to runs: a bound holds, and is named") {
  std::vector<MeasuredCase> rows = measured({runs()[0]}, performance().rates);
  rows[0].figures.front().value *= 0.9;
  const RunCalibration result = calibrated(rows);
  CHECK(result.system.performance->rates.products.sustained.value == 1);
  CHECK(result.fitted[0].bound);
  CHECK(warns(result, "products.sustained reached a bound"));
  const auto& sustained = result.system.performance->rates.products.sustained;
  CHECK(sustained.origin == Origin::assumed);
  CHECK(sustained.source.starts_with("At a bound"));
  Request request = rows[0].request;
  request.system = result.system;
  CHECK(iteration_spread(request, embedded_spreads()).spread.logarithm ==
        embedded_spreads().kernels.logarithm);
}

TEST_CASE("calibrate to runs: a time that no efficiency explains") {
  MeasuredCase run = measured(runs(), changed_rates())[1];
  CHECK(unexplained(run, a100()).empty());
  run.figures.front().value /= 1000;  // milliseconds for seconds
  CHECK(contains(unexplained(run, a100()), "took 0.000"));
  CHECK(contains(unexplained(run, a100()), "must take at least"));
  run.figures.front().value *= 1e6;
  CHECK(contains(unexplained(run, a100()), "can take at most"));
}

TEST_CASE("calibrate to runs: what cannot be fitted is refused") {
  CHECK(mistake({}) == "log.json: holds no run that can be predicted and fitted to");
  const std::vector<MeasuredCase> good = measured(runs(), changed_rates());
  CHECK(mistake({good[0], good[0]}) == "log.json: 'a' is the name of two runs");
  CHECK(contains(mistake(std::vector(most_fitted_runs + 1, good[0])), "at most 200 can be"));
}

namespace {

struct Cluster {
  const char* title;
  const char* key;
  const char* base;
  double before, left_out;  // medians of absolute errors
};
constexpr Cluster clusters[] = {
    {"InternEvo training performance (7B)", "", "dgx-a100-80g", 0.19, 0.07},
    {"SimuMax v1.2 B200 real measurements (Megatron-LM core 0.14-era)", "", "dgx-b200-180g", 0.27, 0.06},
    {"BigScience BLOOM tr11-176B-ml chronicles-prequel", "bloom", "jean-zay-a100-80g", 0.04, 0.03},
    {"vTrain (MICRO 2024) measured validation data, multi-node", "vtrain-multi-node", "vtrain-a100-80g", 0.06,
     0.05}};

ChosenRuns runs_of(const Cluster& cluster, const std::filesystem::path& file) {
  std::vector<MeasuredRun> rows = read_runs(file.string());
  std::erase_if(rows, [&](const MeasuredRun& row) { return row.source != cluster.title; });
  for (MeasuredRun& row : rows) {
    row.key = cluster.key;
    // The words of SimuMax's rows, as a setting.
    if (row.overlap.find("TP comm overlap AG/RS disabled") != std::string::npos)
      row.settings.overlap_tensor_parallel = TensorOverlap::backward;
  }
  return choose_runs(rows, {}, cluster.base, std::nullopt);
}

}  // namespace

SHARED_TEST_CASE("calibrate to runs: development rows of four clusters are predicted better when left out") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  for (const Cluster& cluster : clusters) {
    CAPTURE(cluster.title);
    const ChosenRuns chosen = runs_of(cluster, *file);
    const RunCalibration result = calibrate_to_runs(chosen.fitted, chosen.held_out, read_system(cluster.base),
                                                    embedded_spreads(), "runs.json");
    std::vector<double> before;
    std::vector<double> left_out;
    for (const RunError& row : result.runs) {
      before.push_back(std::abs(row.before));
      left_out.push_back(std::abs(row.left_out.value()));
    }
    CHECK(median(left_out) < median(before));
    CHECK(median(before) <= cluster.before);
    CHECK(median(left_out) <= cluster.left_out);
  }
}

SHARED_TEST_CASE("calibrate to runs: intervals that half of a cluster's rows tell hold the other half's") {
  const auto file = tests::shared_file("data/measured/runs.json");
  if (!file) return;
  int rows = 0;
  int covered = 0;
  for (const Cluster& cluster : clusters) {
    const std::vector<MeasuredCase> all = runs_of(cluster, *file).fitted;
    // Configurations in turn, so that no row of one half repeats one of the other.
    std::vector<Request> seen;
    std::vector<std::vector<MeasuredCase>> halves(2);
    for (const MeasuredCase& it : all) {
      Request request = it.request;
      request.model.name = request.model.source = "";
      const auto found = std::find(seen.begin(), seen.end(), request);
      halves[static_cast<std::size_t>(found - seen.begin()) % 2].push_back(it);
      if (found == seen.end()) seen.push_back(std::move(request));
    }
    int of_cluster = 0;
    int within = 0;
    for (std::size_t half = 0; half < 2; ++half) {
      const RunCalibration result =
          calibrate_to_runs(halves[half], {}, read_system(cluster.base), embedded_spreads(), "runs.json");
      const double spread = result.system.performance->run_spread.value().logarithm;
      for (MeasuredCase it : halves[1 - half]) {
        it.request.system = result.system;
        const Seconds predicted = account(evaluate(it.request)).timing->iteration.total;
        ++of_cluster;
        if (std::abs(std::log(it.figures.front().value / predicted.count())) <= spread) ++within;
      }
      MESSAGE(std::string(cluster.title) << ": " << result.spread_before << " to " << spread);
    }
    MESSAGE(std::string(cluster.title) << ": " << within << " of " << of_cluster << " within");
    rows += of_cluster;
    covered += within;
  }
  MESSAGE("all: " << covered << " of " << rows);
  CHECK(double(covered) / rows >= 0.70);
  CHECK(double(covered) / rows <= 0.95);
}

}  // namespace headroom
