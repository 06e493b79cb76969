// Theorems about layers of lightning attention, Mamba-1 and gated short convolutions.
#include <doctest/doctest.h>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;

OpTable mixer_alone(const Mixers& mixers) {
  Architecture layer = tests::llama;
  layer.positions = Positions::none;
  layer.parts = LayerParts::mixer;
  layer.mixers = mixers;
  return layer_ops(layer, /*one_sequence=*/true);
}
OpTable lightning_layer() {
  return mixer_alone({.lightning = Lightning{.heads = 64, .head_size = 128, .chunk_size = 256}});
}
OpTable mamba1_layer() {
  return mixer_alone({.mamba1 = Mamba1{.channels = 8192, .state_size = 16, .step_rank = 256}});
}
OpTable short_conv_layer() { return mixer_alone({.short_conv = ShortConv{.channels = 2048}}); }

Expr saved_bytes(const OpTable& table) {
  return kept_bytes(stored_tensors(table, Sharding{.tensor = true, .sequence = true}));
}

}  // namespace

TEST_CASE(
    "lightning attention: q, k and v are saved before and after their activation, and the output twice") {
  CHECK(saved_bytes(lightning_layer()) == 4 * s * b * h / t + s * b * (20 * H * P) / t);
  CHECK(parameters(lightning_layer(), {}) == 5 * h * H * P + H * P + h);
}

TEST_CASE("Mamba-1: x, z and steps of all channels are saved, and states of every 2048th token") {
  CHECK(saved_bytes(mamba1_layer()) ==
        4 * s * b * h / t + 2 * s * b * G / t + 4 * s * b * S / t + s * b * (12 * H + H * S / 256) / t);
  CHECK(parameters(mamba1_layer(), {}) ==
        2 * h * H + 5 * H + H * (G + 2 * S) + G * H + H + H * S + H + H * h + h);
}

TEST_CASE("gated short convolution: both products and what they are made of are saved") {
  CHECK(saved_bytes(short_conv_layer()) == 4 * s * b * h / t + s * b * (12 * H) / t);
  CHECK(parameters(short_conv_layer(), {}) == 3 * h * H + 3 * H + H * h + h);
}

}  // namespace headroom
