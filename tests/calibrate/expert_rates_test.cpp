// Rates of grouped products: recovered from blocks of experts that they made; and those of presets against the tables that they
// were fitted to: fitted again they come out the same, and held-out thirds are met. And what a product for each expert takes,
// against products measured so.
#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "csv_rows.hpp"
#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/time/gemm.hpp"
#include "io/messages.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

struct ExpertTable {
  const char* system;
  const char* file;  // under data/microbench/kernels
  double median;     // held out, of the worst type
};

constexpr ExpertTable expert_tables[] = {
    {"dgx-a100-80g", "a100_sxm_moe.csv", 0.05},  {"dgx-h100-80g", "h100_sxm_moe.csv", 0.08},
    {"dgx-h200-141g", "h200_sxm_moe.csv", 0.09}, {"dgx-b200-180g", "b200_sxm_moe.csv", 0.115},
    {"dgx-b300", "b300_sxm_moe.csv", 0.095},     {"gb200-nvl72", "gb200_moe.csv", 0.1},
    {"gb300-nvl72", "gb300_moe.csv", 0.08},
};

// Where every expert is wanted alike; A100's table has power laws alone, of which a single rank holds what others do.
SampleSet blocks_of(const ExpertTable& table, const std::string& path) {
  const bool ampere = std::string(table.system) == "dgx-a100-80g";
  std::string text =
      "dtype,tokens,hidden,expert_feedforward,top_k,experts,tensor_parallel,expert_parallel,milliseconds\n";
  for (const std::vector<std::string>& cells : tests::csv_rows(path)) {
    if (cells.at(8) != "balanced" && !(ampere && cells[7] == "1")) continue;
    const std::string dtype = cells[0] == "bf16"        ? "half"
                              : cells[0] == "fp8_block" ? "fp8_blockwise"
                                                        : cells[0];
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", dtype, cells[1], cells[2], cells[3], cells[4],
                        cells[5], cells[6], cells[7], cells.at(9));
  }
  return parse_samples(text, table.file);
}

double median_of(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// What the model says, with every eleventh sample half as long again.
SampleSet timed_blocks(std::vector<Sample> samples, const Performance& truth) {
  for (Sample& sample : samples) {
    sample.median = *predicted_time(sample, truth) * (shape_hash(sample) % 11 == 5 ? 1.5 : 1);
  }
  return {.file = "made.csv", .samples = std::move(samples)};
}

template <class T>
double found_over(const Sourced<T>& found, const Sourced<T>& truth) {
  return found.value / truth.value;
}

}  // namespace

TEST_CASE("calibrate: blocks of experts tell rates of grouped products, and nothing else") {
  System base = read_system("dgx-a100-80g");
  const GroupedProductRates own{.launch = {Seconds(25e-6), Origin::exact, "truth"},
                                .expert = {Seconds(2e-6), Origin::exact, "truth"},
                                .tile_peak = {FlopsPerSecond(250e12), Origin::exact, "truth"},
                                .result_bandwidth = {BytesPerSecond(0.6e12), Origin::exact, "truth"},
                                .memory_bandwidth = {BytesPerSecond(1.5e12), Origin::exact, "truth"},
                                .row_bandwidth = {BytesPerSecond(1.1e12), Origin::exact, "truth"}};
  Performance truth = *base.performance;
  truth.rates.grouped_products = own;
  std::vector<Sample> samples;
  for (const std::int64_t tokens : {512, 2048, 8192, 16384}) {
    for (const std::int64_t experts : {8, 32, 128}) {
      for (const std::int64_t width : {256, 768, 2048}) {
        for (const std::int64_t ranks : {1, 4}) {
          samples.push_back({.kind = SampleKind::expert_block,
                             .expert_block = {.tokens = tokens,
                                              .hidden = 2048,
                                              .feedforward = width,
                                              .top_k = 4,
                                              .experts = experts,
                                              .expert_parallel = ranks}});
        }
      }
    }
  }
  base.performance->rates.grouped_products.reset();
  CHECK(replay(timed_blocks(samples, truth).samples, *base.performance)
            .unmodelled.at(SampleKind::expert_block) == samples.size());
  const Calibration result = calibrate({timed_blocks(samples, truth)}, base);
  const Rates& found = result.system.performance->rates;
  REQUIRE(found.grouped_products.has_value());
  const auto near = [](double value) { return doctest::Approx(value).epsilon(0.05); };
  CHECK(found_over(found.grouped_products->launch, own.launch) == near(1));
  CHECK(found_over(found.grouped_products->expert, own.expert) == near(1));
  CHECK(found_over(found.grouped_products->tile_peak, own.tile_peak) == near(1));
  CHECK(found_over(found.grouped_products->result_bandwidth, own.result_bandwidth) == near(1));
  CHECK(found_over(found.grouped_products->memory_bandwidth, own.memory_bandwidth) == near(1));
  CHECK(found_over(found.grouped_products->row_bandwidth, own.row_bandwidth) == near(1));
  CHECK(found.grouped_products->fitted_rows == FittedRange{16, 8192});
  CHECK(found.grouped_products->held_out_ratios.has_value());
  CHECK(found.grouped_products->launch.source.starts_with(
      "Fitted by headroom calibrate to 72 blocks of experts"));
  CHECK(found.products == base.performance->rates.products);
  CHECK(found.kernels == base.performance->rates.kernels);
  CHECK(parse_system(write_system(result.system), "a100.json").performance == result.system.performance);

  samples.resize(10);
  CHECK(message_of([&] { calibrate({timed_blocks(samples, truth)}, base); }) ==
        "made.csv: holds 10 blocks of experts of different shape, and at least 18 are needed");
}

SHARED_TEST_CASE("presets: held-out blocks of experts are met, and the fit is the preset") {
  for (const ExpertTable& table : expert_tables) {
    CAPTURE(table.system);
    const auto file = tests::shared_file(std::string("data/microbench/kernels/") + table.file);
    if (!file) continue;
    const System system = read_system(table.system);
    const Calibration fit = calibrate({blocks_of(table, file->string())}, system);
    CHECK_FALSE(fit.held_out.empty());
    for (const ErrorGroup& group : fit.held_out) {
      CAPTURE(group.name);
      CHECK(group.median_absolute <= table.median);
      CHECK(std::abs(group.bias) <= 0.03);
    }
    CHECK(fit.system.performance->rates.grouped_products->held_out_ratios ==
          system.performance->rates.grouped_products->held_out_ratios);
    for (const FittedRate& rate : fit.fitted) {
      CAPTURE(rate.name);
      CHECK(rate.before == doctest::Approx(rate.value).epsilon(0.01));
    }
  }
}

// Products of 20 to 256 experts in all three passes, of a B200 system whose plain products take 1.36 times what the table of
// bursts says. So many at a time take what one after another takes, and a batch of them would take half.
SHARED_TEST_CASE("presets: products measured expert by expert take what they take one after another") {
  const auto file = tests::shared_file("data/microbench/b200-sxm-180g_grouped_gemm_bf16_simumax.csv");
  if (!file) return;
  const Performance performance = *read_system("dgx-b200-180g").performance;
  constexpr double clock = 0.735;  // that meets the plain products of the same system
  std::vector<double> apart;
  std::vector<double> as_a_batch;
  for (const std::vector<std::string>& cells : tests::csv_rows(file->string())) {
    const auto number = [&](std::size_t i) { return std::stoll(cells.at(i)); };
    const std::int64_t groups = number(1);
    const std::int64_t m = number(2);
    const std::int64_t n = number(3);
    const std::int64_t k = number(4);
    Gemm gemm{.rows = m, .columns = n, .inner = k};
    if (cells[0] == "bwd_grad_act") gemm = {.rows = m, .columns = k, .inner = n};
    if (cells[0] == "bwd_grad_w")
      gemm = {.rows = n, .columns = k, .inner = m, .result_bytes = cells[5] == "fp32" ? 8 : 4};
    const double measured = std::stod(cells.at(6)) / 1e3;
    const Seconds one = gemm_time(gemm, performance.device, performance.rates, clock);
    apart.push_back(static_cast<double>(groups) * one.count() / measured - 1);
    gemm.batch = groups;
    as_a_batch.push_back(gemm_time(gemm, performance.device, performance.rates, clock).count() / measured -
                         1);
  }
  CHECK(apart.size() == 81);
  CHECK(std::abs(median_of(apart)) < 0.07);
  CHECK(median_of(as_a_batch) < -0.18);
  for (double& error : apart) error = std::abs(error);
  CHECK(median_of(apart) < 0.11);
  CHECK(quantile(apart, 0.9) < 0.22);
}

}  // namespace headroom
