// Rates recovered from samples that the model's own equations made, with noise and outliers; and the shared tables.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "headroom/calibrate/fit_rates.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "io/messages.hpp"
#include "paths.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using tests::a100;

// A number in [-1, 1) of a shape, the same on every platform.
double noise(const Sample& sample, std::uint64_t salt) {
  const std::uint64_t bits = (shape_hash(sample) + salt) * 0x9E3779B97F4A7C15U;
  return static_cast<double>(bits >> 11U) / static_cast<double>(std::uint64_t{1} << 52U) - 1;
}

// What the model says, with noise of 3% and an eleventh of the samples half as fast again.
SampleSet measured(std::vector<Sample> samples, const Performance& truth) {
  for (Sample& sample : samples) {
    const bool outlier = shape_hash(sample) % 11 == 5;
    sample.median = *predicted_time(sample, truth) * (1 + 0.03 * noise(sample, 1)) * (outlier ? 1.5 : 1);
  }
  return {.file = "made.csv", .samples = std::move(samples)};
}

std::vector<Sample> products() {
  std::vector<Sample> samples;
  for (const std::int64_t m : {128, 320, 1024, 2048, 8192}) {
    for (const std::int64_t n : {128, 768, 1024, 4096, 12288}) {
      for (const std::int64_t k : {64, 256, 1024, 4096, 16384}) {
        samples.push_back(
            {.kind = SampleKind::matrix_product, .product = {.rows = m, .columns = n, .inner = k}});
      }
    }
  }
  return samples;
}

std::vector<Sample> collectives(std::vector<std::int64_t> rank_counts) {
  std::vector<Sample> samples;
  for (const std::int64_t ranks : rank_counts) {
    for (double bytes = 1024; bytes <= 1 << 29; bytes *= 4) {
      for (const SampleKind kind :
           {SampleKind::all_reduce, SampleKind::all_gather, SampleKind::reduce_scatter}) {
        samples.push_back({.kind = kind, .ranks = ranks, .bytes = Bytes(bytes)});
      }
    }
  }
  return samples;
}

// The A100 with rates that no start of a fit has.
Performance changed_truth() {
  Performance truth = tests::performance();
  truth.rates.kernels.launch.value = Seconds(2.5e-6);
  truth.rates.products.tile_peak.value = FlopsPerSecond(250e12);
  truth.rates.products.power_cap.value = FlopsPerSecond(200e12);
  truth.rates.products.memory_bandwidth.value = BytesPerSecond(0.9e12);
  truth.rates.collectives.low_latency_launch.value = Seconds(20e-6);
  truth.rates.collectives.ring_bandwidth.value = BytesPerSecond(150e9);
  truth.rates.collectives.ring_launch.value = Seconds(60e-6);
  truth.rates.streaming.bandwidth_share.value = 0.66;
  truth.rates.kernels.shortest.value = Seconds(6e-6);
  return truth;
}

const ErrorGroup& group(const std::vector<ErrorGroup>& groups, const std::string& name) {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const ErrorGroup& each) { return each.name == name; });
  REQUIRE(found != groups.end());
  return *found;
}

template <class T>
double ratio(const Sourced<T>& x, const Sourced<T>& y) {
  return x.value / y.value;
}

std::string mistake(const std::vector<SampleSet>& sets) {
  return message_of([&] { return calibrate(sets, a100()); });
}

}  // namespace

TEST_CASE("calibrate: known rates come back through noise and outliers") {
  const Performance truth = changed_truth();
  std::vector<Sample> samples = products();
  for (const Sample& sample : collectives({2, 4, 8})) samples.push_back(sample);
  for (double bytes = 4096; bytes < 4e9; bytes *= 4) {
    samples.push_back({.kind = SampleKind::streaming, .label = "softmax", .bytes = Bytes(bytes)});
  }
  const Calibration result = calibrate({measured(samples, truth)}, a100());
  const Rates& found = result.system.performance->rates;
  const auto near = [](double value) { return doctest::Approx(value).epsilon(0.04); };
  CHECK(ratio(found.products.power_cap, truth.rates.products.power_cap) == near(1));
  CHECK(ratio(found.products.tile_peak, truth.rates.products.tile_peak) == near(1));
  CHECK(ratio(found.collectives.ring_bandwidth, truth.rates.collectives.ring_bandwidth) == near(1));
  CHECK(ratio(found.collectives.low_latency_launch, truth.rates.collectives.low_latency_launch) == near(1));
  CHECK(ratio(found.streaming.bandwidth_share, truth.rates.streaming.bandwidth_share) == near(1));
  CHECK(ratio(found.kernels.shortest, truth.rates.kernels.shortest) == near(1));
  CHECK(group(result.held_out, "products, m n k >= 1024").median_absolute < 0.03);
  CHECK(group(result.held_out, "collectives, from 1 MiB").median_absolute < 0.05);

  CHECK(found.products.tile_peak.origin == Origin::calibrated);
  CHECK(contains(found.products.tile_peak.source, "125 matrix products of made.csv"));
  CHECK(found.products.sustained ==
        a100().performance->rates.products.sustained);  // of which there are no samples
  CHECK(found.products.fitted_sides == FittedRange{128, 12288});
  CHECK(found.products.fitted_inner == FittedRange{64, 16384});
  CHECK(found.collectives.fitted_ranks == FittedRange{2, 8});
  CHECK(parse_system(write_system(result.system), "a100.json").performance == result.system.performance);
}

TEST_CASE("calibrate: products under sustained load tell the sustained clock") {
  Performance truth = tests::performance();
  truth.rates.products.sustained.value = 0.85;
  std::vector<Sample> samples = products();
  for (Sample sample : products()) {
    sample.load = Load::sustained;
    samples.push_back(sample);
  }
  const Calibration result = calibrate({measured(samples, truth)}, a100());
  CHECK(result.system.performance->rates.products.sustained.value == doctest::Approx(0.85).epsilon(0.02));
}

TEST_CASE("calibrate: samples of fp8 tell rates of fp8, and nothing of 16 bits") {
  System base = a100();
  base.performance->device.fp8_peak = 2 * base.performance->device.half_peak;
  Performance truth = *base.performance;
  NarrowProductRates own{.products = truth.rates.products};
  own.products.tile_peak.value = FlopsPerSecond(500e12);
  own.products.power_cap.value = FlopsPerSecond(360e12);
  own.products.memory_bandwidth.value = BytesPerSecond(0.9e12);
  own.quantization.launch.value = Seconds(12e-6);
  own.quantization.bandwidth.value = BytesPerSecond(0.7e12);
  const std::size_t fp8 = *narrow_index(Dtype::fp8);
  truth.rates.products_by_dtype[fp8] = own;
  std::vector<Sample> samples = products();
  for (Sample& sample : samples) {
    sample.dtype = sample.product.dtype = Dtype::fp8;
    sample.quantizes = true;
  }
  const Calibration result = calibrate({measured(samples, truth)}, base);
  const Rates& found = result.system.performance->rates;
  REQUIRE(found.products_by_dtype[fp8].has_value());
  const NarrowProductRates& fitted = *found.products_by_dtype[fp8];
  const auto near = [](double value) { return doctest::Approx(value).epsilon(0.05); };
  CHECK(ratio(fitted.products.power_cap, own.products.power_cap) == near(1));
  CHECK(ratio(fitted.quantization.launch, own.quantization.launch) == near(1));
  CHECK(ratio(fitted.quantization.bandwidth, own.quantization.bandwidth) == near(1));
  CHECK(fitted.products.power_cap.origin == Origin::calibrated);
  CHECK(contains(fitted.products.power_cap.source, "125 fp8 matrix products"));
  CHECK(fitted.products.sustained.origin == Origin::assumed);  // of which there are no samples
  CHECK(fitted.products.held_out_ratios.has_value());
  CHECK(fitted.products.fitted_sides == FittedRange{128, 12288});
  CHECK(found.products == base.performance->rates.products);
  CHECK(found.kernels == base.performance->rates.kernels);
  CHECK(group(result.held_out, "products, fp8, m n k >= 1024").median_absolute < 0.03);
  CHECK(parse_system(write_system(result.system), "a100.json").performance == result.system.performance);

  CHECK(contains(mistake({measured(samples, truth)}),
                 "holds products of fp8, for which dgx-a100-80g gives no peak"));
  CHECK(replay(measured(samples, truth).samples, *a100().performance)
            .unmodelled.at(SampleKind::matrix_product) == samples.size());
}

TEST_CASE("calibrate: the interval of products is that of bursts") {
  std::vector<Sample> sustained = products();
  for (Sample& sample : sustained) sample.load = Load::sustained;
  const Calibration alone = calibrate({measured(sustained, tests::performance())}, a100());
  CHECK(alone.system.performance->rates.products.held_out_ratios ==
        a100().performance->rates.products.held_out_ratios);
  for (const ReplayedSample& row : alone.fit.rows) CHECK_FALSE(row.in_interval.has_value());

  const SampleSet bursts = measured(products(), tests::performance());
  const Calibration both = calibrate({bursts, measured(sustained, changed_truth())}, a100());
  CHECK(both.system.performance->rates.products.held_out_ratios ==
        calibrate({bursts}, a100()).system.performance->rates.products.held_out_ratios);
}

TEST_CASE("calibrate: collectives over several nodes leave the interval as it is") {
  std::vector<Sample> across = collectives({16});
  for (Sample& sample : across) sample.nodes = 2;
  const SampleSet within = measured(collectives({2, 4, 8}), tests::performance());
  const Calibration both = calibrate({within, measured(across, changed_truth())}, a100());
  CHECK(both.system.performance->rates.collectives.held_out_ratios ==
        calibrate({within}, a100()).system.performance->rates.collectives.held_out_ratios);
}

TEST_CASE("calibrate: collectives of one number of ranks leave steps as they are, and say so") {
  const Calibration result = calibrate({measured(collectives({8}), changed_truth())}, a100());
  const CollectiveRates& found = result.system.performance->rates.collectives;
  CHECK(found.ring_step == tests::performance().rates.collectives.ring_step);
  CHECK(found.fitted_ranks == FittedRange{8, 8});
  CHECK(result.warnings.at(0).starts_with("all collectives run over 8 ranks"));
  CHECK(group(result.fit.groups, "collectives, from 1 MiB").median_absolute < 0.05);
}

TEST_CASE("calibrate: repeated shapes count once, by their median") {
  SampleSet set = measured(products(), tests::performance());
  const Calibration once = calibrate({set}, a100());
  const std::size_t count = set.samples.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (const double factor : {0.5, 2.0}) {
      set.samples.push_back(set.samples[i]);
      set.samples.back().median = set.samples[i].median * factor;
    }
  }
  const Calibration thrice = calibrate({set}, a100());
  CHECK(thrice.fit == once.fit);
  CHECK(thrice.warnings.at(0) == "250 of 375 samples repeat the shape of another: medians are used");
}

TEST_CASE("calibrate: samples that tell nothing are refused") {
  const SampleSet good = measured(products(), tests::performance());
  SampleSet other = good;
  other.device = "NVIDIA H100 80GB HBM3";
  CHECK(mistake({other}) ==
        "made.csv: holds samples of 'NVIDIA H100 80GB HBM3', and dgx-a100-80g has A100-SXM4-80GB: name a "
        "--base of "
        "that device");
  SampleSet one = good;
  one.samples.resize(1);
  CHECK(mistake({one}) == "made.csv: holds 1 matrix products of different shape, and at least 24 are needed");
  SampleSet flat = good;
  for (Sample& sample : flat.samples) sample.product.rows = 4096;
  CHECK(contains(mistake({flat}), "has products of one m only"));
  SampleSet same = good;
  for (Sample& sample : same.samples) sample.median = Seconds(1);
  CHECK(contains(mistake({same}), "has products that all take the same time"));
  SampleSet fast = good;
  for (Sample& sample : fast.samples) sample.median = sample.median / 1000;
  CHECK(contains(mistake({fast}),
                 "TFLOP/s is more than the 312 of A100-SXM4-80GB: another device, or times that"));
  SampleSet slow = good;
  for (Sample& sample : slow.samples) sample.median = sample.median * 4;
  CHECK(contains(calibrate({slow}, a100()).warnings.at(0), "is it another device?"));
  const SampleSet exchanges{
      .file = "x.csv",
      .samples = {{.kind = SampleKind::all_to_all, .ranks = 8, .bytes = 1_MiB, .median = Seconds(1)}}};
  CHECK(mistake({exchanges}) == "x.csv: holds no samples that rates can be fitted to");
  // Rates of collectives are those within a node.
  SampleSet across = measured(collectives({16}), tests::performance());
  for (Sample& sample : across.samples) sample.nodes = 2;
  CHECK(mistake({across}) == "made.csv: holds no samples that rates can be fitted to");
}

TEST_CASE("calibrate: times of another unit are refused") {
  const auto with_times = [](std::vector<Sample> samples, double factor) {
    SampleSet set = measured(std::move(samples), tests::performance());
    for (Sample& sample : set.samples) sample.median = sample.median * factor;
    return mistake({set});
  };
  std::vector<Sample> sustained = products();
  for (Sample& sample : sustained) sample.load = Load::sustained;
  std::vector<Sample> streaming;
  for (double bytes = 4096; bytes < 4e9; bytes *= 4)
    streaming.push_back({.kind = SampleKind::streaming, .bytes = Bytes(bytes)});
  const std::string slow = "are the times in the unit named, and of this device?";
  CHECK(contains(with_times(sustained, 1e-3), "TFLOP/s is more than the 312 of A100-SXM4-80GB"));
  CHECK(contains(with_times(sustained, 1e3), "miss the matrix products under sustained load by 100%"));
  CHECK(contains(with_times(products(), 1e3), slow));
  CHECK(contains(with_times(collectives({2, 4, 8}), 1e-3), "GB/s is more than 4 times the 300 of its links"));
  CHECK(contains(with_times(collectives({2, 4, 8}), 1e3),
                 "are the times in the unit named, and of this device and its links"));
  CHECK(contains(with_times(streaming, 1e-3), "GB/s is more than 10 times the 2039 of its memory"));
  CHECK(contains(with_times(streaming, 1e3), slow));
  for (const double time : {1e300, 1e-300}) {
    SampleSet set = measured(products(), tests::performance());
    set.samples[7].median = Seconds(time);
    CHECK(contains(mistake({set}), "s is no time of a kernel, which takes from 1e-09 to 1000 s"));
  }
}

TEST_CASE("calibrate: kernels of training steps that no rates meet are left out beside others that are met") {
  SampleSet bursts = measured(products(), tests::performance());
  std::vector<Sample> sustained = products();
  for (Sample& sample : sustained) sample.load = Load::sustained;
  SampleSet steps = measured(std::move(sustained), tests::performance());
  steps.file = "steps.json";
  for (Sample& sample : steps.samples) sample.median = sample.median * 1e3;
  const Calibration result = calibrate({bursts, steps}, a100());
  CHECK(result.fitted == calibrate({bursts}, a100()).fitted);
  CHECK(contains(result.warnings.back(),
                 "matrix products under sustained load are left out, and their rates stay those of"));
  CHECK(contains(result.warnings.back(), "steps.json"));
}

TEST_CASE(
    "calibrate: all-reduces of steps that switches sum up tell what switches do, and nothing of rings") {
  const System h100 = read_system("dgx-h100-80g");
  Performance truth = *h100.performance;
  truth.rates.collectives.nvls->switch_bandwidth.value = BytesPerSecond(240e9);
  std::vector<Sample> samples;
  for (const Bytes bytes : {64_MiB, 128_MiB, 256_MiB, 512_MiB})
    samples.push_back({.kind = SampleKind::all_reduce, .ranks = 8, .bytes = bytes, .load = Load::sustained});
  const auto fitted = [&] {
    SampleSet set{.file = "step.json", .samples = samples};
    for (Sample& sample : set.samples) sample.median = *predicted_time(sample, truth);
    return calibrate({set}, h100).fitted;
  };
  REQUIRE(fitted().size() == 1);
  CHECK(fitted()[0].name == "collectives.nvls.switch_bandwidth");
  CHECK(fitted()[0].value == doctest::Approx(240e9).epsilon(0.01));
  samples.push_back({.kind = SampleKind::all_gather, .ranks = 8, .bytes = 256_MiB, .load = Load::sustained});
  REQUIRE(fitted().size() == 2);
  CHECK(fitted()[0].name == "collectives.ring_bandwidth");
}

TEST_CASE("calibrate: a rate at a bound is not called calibrated") {
  SampleSet set = measured(products(), tests::performance());
  // Faster than the bursts' rates allow: a clock above that of a burst.
  for (Sample& sample : set.samples) {
    sample.load = Load::sustained;
    sample.median = *predicted_time(sample, tests::performance()) * 0.97;
  }
  const Calibration result = calibrate({set}, a100());
  REQUIRE(result.fitted.size() == 1);
  CHECK(result.fitted[0].bound);
  const auto& sustained = result.system.performance->rates.products.sustained;
  CHECK(sustained.origin == Origin::assumed);
  CHECK(sustained.source.starts_with("At a bound, so not told by what it was fitted to. Fitted by headroom"));
}

TEST_CASE("devices: names of one device, and of others") {
  CHECK(same_device("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"));
  CHECK(same_device("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"));
  CHECK(same_device("NVIDIA H200", "H200-SXM-141GB"));
  CHECK_FALSE(same_device("NVIDIA A100-SXM4-40GB", "A100-SXM4-80GB"));
  CHECK_FALSE(same_device("NVIDIA A100 80GB PCIe", "A100-SXM4-80GB"));
  CHECK_FALSE(same_device("NVIDIA H100 NVL", "H100-SXM5-80GB"));
  CHECK_FALSE(same_device("NVIDIA H200 NVL", "H200-SXM-141GB"));
  CHECK_FALSE(same_device("NVIDIA H100 NVL", "NVIDIA H100 PCIe"));
  CHECK_FALSE(same_device("NVIDIA H100 80GB HBM3", "H200-SXM-141GB"));
}

}  // namespace headroom
