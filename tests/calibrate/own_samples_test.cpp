// The H100's rates against samples of our own, which they were not fitted to but for the backward pass of attention:
// headroom-measure's kernels and PyTorch's attention on one H100 SXM5 80GB.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

// The group of a name, of the samples with a label, or of all without.
ErrorGroup group_of(const std::string& name, const std::string& label = {}) {
  std::vector<Sample> samples =
      read_samples((tests::source_dir() / "tests" / "calibrate" / "h100_samples.json").string()).samples;
  if (!label.empty()) std::erase_if(samples, [&](const Sample& sample) { return sample.label != label; });
  const SampleReplay replayed = replay(samples, *read_system("dgx-h100-80g").performance);
  const auto found = std::find_if(replayed.groups.begin(), replayed.groups.end(),
                                  [&](const ErrorGroup& group) { return group.name == name; });
  REQUIRE(found != replayed.groups.end());
  return *found;
}

}  // namespace

TEST_CASE("own samples: an H100 sustains the products that its rates say") {
  const ErrorGroup sustained = group_of("products, sustained load");
  CHECK(sustained.count == 72);
  CHECK(sustained.median_absolute < 0.045);
  CHECK(std::abs(sustained.bias) < 0.01);
  // In bursts it is faster than the H100 of the table that the rates were fitted to.
  const ErrorGroup bursts = group_of("products, m n k >= 1024");
  CHECK(bursts.median_absolute < 0.10);
  CHECK(bursts.bias > 0.05);
}

TEST_CASE("own samples: attention of cuDNN, and FlashAttention 2 at the speed of PyTorch's kernels") {
  CHECK(group_of("attention, sustained load", "cuDNN").median_absolute < 0.04);
  const ErrorGroup backward = group_of("attention, backward", "cuDNN");
  CHECK(backward.count == 23);
  CHECK(backward.median_absolute < 0.05);
  CHECK(std::abs(backward.bias) < 0.01);

  const double speed = read_system("dgx-h100-80g").performance->rates.flash_attention.pytorch_speed.value;
  for (const char* const name :
       {"attention, forward, device filled", "attention, sustained load", "attention, backward"}) {
    CAPTURE(name);
    CHECK(1 + group_of(name, "FlashAttention 2").bias == doctest::Approx(speed).epsilon(0.05));
  }
}

}  // namespace headroom
