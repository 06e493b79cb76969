#include "harness/report.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "harness/options.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/samples_file.hpp"
#include "io/messages.hpp"
#include "io/text.hpp"
#include "paths.hpp"

namespace headroom::harness {
namespace {

std::optional<Options> options_of(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "headroom-measure");
  return read_options(static_cast<int>(arguments.size()), arguments.data());
}
std::string mistake(const std::vector<const char*>& arguments) {
  return message_of([&] { return options_of(arguments); });
}

std::vector<Sample> everything() { return planned_samples(Options{}, 16, 2); }

// As if measured: no two samples take the same time.
std::vector<Measured> timed(const std::vector<Sample>& samples) {
  std::vector<Measured> measured;
  for (const Sample& sample : samples) {
    measured.push_back({.sample = sample, .repeats = 15});
    Sample& each = measured.back().sample;
    each.median = Seconds(1e-6 * static_cast<double>(measured.size()));
    each.spread = 0.25;
  }
  return measured;
}

}  // namespace

TEST_CASE("samples of headroom-measure: what is written is what is read") {
  const Heading heading{.device = "NVIDIA \"H100\" 80GB HBM3",
                        .driver = "580.95.05",
                        .cuda = "13.0",
                        .cublas = "13.0.2",
                        .nccl = "2.28.9",
                        .clocks = "SM at most 1980 MHz"};
  std::vector<Measured> measured = timed(everything());
  measured.front().state = DeviceState{1410, 1200, 399.5, 61};
  const SampleSet set = parse_samples(samples_json(heading, measured), "s.json");
  CHECK(set.device == heading.device);
  CHECK(set.environment == "driver 580.95.05, CUDA 13.0, cuBLAS 13.0.2, NCCL 2.28.9");
  REQUIRE(set.samples.size() == measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    Sample expected = measured[i].sample;
    expected.where = "/samples/" + std::to_string(i);
    CHECK(set.samples[i] == expected);
  }
}

// The file that is validated against `headroom schema samples`: one of each kind, each with a GPU's state.
TEST_CASE("samples of headroom-measure: every kind is written as the file says") {
  const Heading heading{.device = "NVIDIA H100 80GB HBM3",
                        .driver = "580.95.05",
                        .cuda = "13.0",
                        .cublas = "13.0.2",
                        .nccl = "2.28.9",
                        .clocks = "SM at most 1980 MHz, power limit 700 W"};
  std::vector<Sample> samples;
  for (const Sample& sample : everything()) {
    const bool seen = std::any_of(samples.begin(), samples.end(), [&](const Sample& other) {
      return other.kind == sample.kind && other.nodes == sample.nodes && other.load == sample.load;
    });
    if (!seen) samples.push_back(sample);
  }
  std::vector<Measured> measured = timed(samples);
  for (Measured& each : measured) each.state = DeviceState{1410, 1200, 399.5, 61};
  CHECK(samples_json(heading, measured) ==
        read_file((tests::source_dir() / "tests/io/samples/headroom_measure.json").string()));
}

TEST_CASE("samples of headroom-measure: the design") {
  const std::vector<Sample> all = everything();
  CHECK(merge_repeated(all).size() == all.size());
  const auto count = [&](auto&& wanted) { return std::count_if(all.begin(), all.end(), wanted); };
  for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
    for (const Load load : {Load::burst, Load::sustained}) {
      for (const Layout layout : {Layout::forward, Layout::data_gradient, Layout::weight_gradient}) {
        CHECK(count([&](const Sample& sample) {
                return sample.kind == SampleKind::matrix_product && sample.half_format == format &&
                       sample.load == load && layout_of(sample) == layout;
              }) > 0);
      }
    }
  }
  for (const std::string_view kernel : streaming_kernels)
    CHECK(count([&](const Sample& sample) { return sample.label == kernel; }) == 8);
  for (const SampleKind kind : {SampleKind::all_reduce, SampleKind::all_gather, SampleKind::reduce_scatter,
                                SampleKind::all_to_all, SampleKind::send_receive}) {
    for (const auto& [ranks, nodes] : {std::pair(2, 1), {4, 1}, {8, 1}, {16, 2}}) {
      CHECK(count([&, r = ranks, n = nodes](const Sample& sample) {
              return sample.kind == kind && sample.ranks == r && sample.nodes == n;
            }) == 18);
    }
  }
  for (const Sample& sample : all) CHECK(assumed_duration(sample) > Seconds(0));
}

TEST_CASE("samples of headroom-measure: odd numbers of ranks") {
  CHECK(rank_counts(1).empty());
  CHECK(rank_counts(2) == std::vector<std::int64_t>{2});
  CHECK(rank_counts(6) == std::vector<std::int64_t>{2, 4, 6});
  for (const Sample& sample : designed_collectives(6, 1)) {
    const auto bytes = static_cast<std::int64_t>(sample.bytes.count());
    CHECK(bytes % (2 * 6) == 0);
    CHECK(bytes > 0);
  }
}

TEST_CASE("headroom-measure: its command line") {
  const auto some = options_of({"s.json", "collectives", "kernels", "--half-format", "fp16", "--gpus", "2"});
  REQUIRE(some);
  CHECK(some->collectives);
  CHECK(some->kernels);
  CHECK_FALSE(some->products);
  CHECK(some->formats == std::vector<HalfFormat>{HalfFormat::fp16});
  CHECK(some->gpus == 2);
  CHECK(options_of({"--list"})->dry_run);
  const Options kernels_alone = *options_of({"--dry-run", "--half-format", "bf16", "kernels"});
  CHECK(kernels_alone.kernels);
  CHECK_FALSE(kernels_alone.products);
  CHECK(kernels_alone.formats == std::vector{HalfFormat::bf16});
  CHECK(mistake({}) == "FILE: is missing: where to write the samples");
  CHECK(mistake({"s.json", "prodcts", "--half-format", "fp8", "--gpus", "-1", "--timeout", "0"}) ==
        "PART: must be kernels, products or collectives (found 'prodcts')\n"
        "--half-format: must be bf16 or fp16 (found 'fp8')\n"
        "--gpus: must be from 1 to 64 (found -1)\n"
        "--timeout: must be from 1 to 86400 seconds (found 0)");
  CHECK(mistake({"kernels"}) == "FILE: comes before the parts (found 'kernels')");
  CHECK(contains(mistake({"s.json", "--gpus", "x"}), "--gpus"));
  CHECK(contains(mistake({"s.json", "--unknown"}), "--unknown"));
}

TEST_CASE("headroom-measure: a dry run counts what is planned") {
  const auto options = options_of({"--list", "--half-format", "bf16"});
  const std::string text = dry_run(*options, 8, 1);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const std::size_t planned = planned_samples(*options, 8, 1).size();
  // An empty line, 8 kinds, the sum and what it assumes.
  CHECK(static_cast<std::size_t>(lines) == planned + 11);
  CHECK(contains(text, "matrix_product  weight gradient  1 x 12288 x 4096 x 4096"));
  CHECK(contains(text, std::to_string(planned) + " samples"));
}

TEST_CASE("report: a wrong sample is counted apart from those that are kept") {
  const std::vector<Sample> planned = designed_kernels();
  Report report("unwritten.json", {}, planned);
  report.add(planned[0], timing_of({1, 2, 3}), std::nullopt);
  CHECK(report.wrong_count() == 0);
  report.wrong(planned[1], "a copy is wrong");
  report.skip(planned[2], "no memory for it");
  CHECK(report.wrong_count() == 1);
  CHECK(report.count() == 1);
}

TEST_CASE("timing: median and spread") {
  const Timing timing = timing_of({5, 1, 4, 2, 3});
  CHECK(timing.median_seconds == 3);
  CHECK(timing.spread == doctest::Approx(0.5 * (4 - 2) / 3.0));
  CHECK(timing.repeats == 5);
  CHECK(timing_of({2}).spread == 0);
}

}  // namespace headroom::harness
