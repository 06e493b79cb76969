#include "headroom/calibrate/layer_replay.hpp"

#include <doctest/doctest.h>

#include "headroom/io/system_file.hpp"

namespace headroom {
namespace {

// K22's 22B layer on one of 8 ranks.
MeasuredLayer layer_22b(LayerPass pass, RecomputePolicy recompute = RecomputePolicy::none) {
  return {.sequence = 2048,
          .micro_batch = 4,
          .hidden = 6144,
          .heads = 64,
          .tensor_parallel = 8,
          .recompute = recompute,
          .pass = pass};
}

double milliseconds(const MeasuredLayer& layer, std::int64_t ranks) {
  const System a100 = read_system("dgx-a100-80g");
  return layer_time(layer, ranks, *a100.performance).value().count() * 1e3;
}

TEST_CASE("layer samples: K22's 22B layer takes what table 4 says") {
  // Its backward pass has kernels that a measured layer does without: the bound is loose.
  CHECK(milliseconds(layer_22b(LayerPass::forward), 8) == doctest::Approx(7.7).epsilon(0.05));
  CHECK(milliseconds(layer_22b(LayerPass::backward), 8) == doctest::Approx(11.9).epsilon(0.2));
}

TEST_CASE("layer samples: a rank alone waits for no collective") {
  for (const LayerPass pass : {LayerPass::forward, LayerPass::backward}) {
    CHECK(milliseconds(layer_22b(pass), 0) < milliseconds(layer_22b(pass), 8));
  }
}

TEST_CASE("layer samples: a backward pass holds its replay") {
  const double plain = milliseconds(layer_22b(LayerPass::backward), 0);
  const double selective = milliseconds(layer_22b(LayerPass::backward, RecomputePolicy::selective), 0);
  const double full = milliseconds(layer_22b(LayerPass::backward, RecomputePolicy::full), 0);
  CHECK(plain < selective);
  CHECK(selective < full);
  CHECK(full - plain <= milliseconds(layer_22b(LayerPass::forward), 0) * (1 + 1e-12));  // rounding forgiven
}

TEST_CASE("layer samples: nothing is said of a layer that cannot be split so") {
  const System a100 = read_system("dgx-a100-80g");
  MeasuredLayer layer = layer_22b(LayerPass::forward);
  layer.tensor_parallel = 7;
  CHECK_FALSE(layer_time(layer, 0, *a100.performance).has_value());
}

}  // namespace
}  // namespace headroom
