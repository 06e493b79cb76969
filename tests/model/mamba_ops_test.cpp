// Theorems about layers of Mamba, layers of one part, and experts behind a latent projection.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/hardware/software.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;

constexpr Architecture part_of_hybrid(LayerParts parts, bool mixes_states) {
  Architecture layer = llama;
  layer.activation = Activation::squared_relu;
  layer.positions = Positions::none;
  layer.parts = parts;
  if (mixes_states) layer.mixers.mamba = Mamba{.heads = 64, .head_size = 64, .groups = 8, .state_size = 128};
  return layer;
}
constexpr Architecture mamba_layer = part_of_hybrid(LayerParts::mixer, true);
constexpr Architecture attention_layer = part_of_hybrid(LayerParts::mixer, false);
constexpr Architecture mlp_layer = part_of_hybrid(LayerParts::mlp, false);

constexpr Architecture behind_latent(bool latent) {
  Architecture layer = mlp_layer;
  layer.experts = Experts{.count = 8, .per_token = 2, .latent = latent ? 1 : 0};
  return layer;
}

constexpr Sharding over_ranks{.tensor = true, .sequence = true};
constexpr Sharding over_sequence{.tensor = true, .sequence = true, .beside = {{ParallelAxis::context, c}}};

constexpr OpTable single_table(const Architecture& layer) { return layer_ops(layer, /*one_sequence=*/true); }

constexpr Expr layer_saves(const Architecture& layer, const Sharding& sharding,
                           Detail detail = Detail::paper) {
  return kept_bytes(stored_tensors(single_table(layer), sharding, {}, detail));
}

Transformer nano() { return read_model("nemotron-3-nano-30b-a3b"); }

}  // namespace

TEST_CASE("mamba: a layer keeps its input twice, z, x, B, C and dt, and three outputs") {
  static_assert(layer_saves(mamba_layer, over_ranks) ==
                4 * s * b * h / t + (10 * s * b * H * P + 4 * s * b * G * S) / t + 2 * s * b * H / t);
  static_assert(layer_saves(mamba_layer, over_ranks, Detail::exact) - layer_saves(mamba_layer, over_ranks) ==
                4 * s * b / t + 12 * H / t + 4 * s * b * G / t);
}

TEST_CASE("mamba: several sequences are copied to batch first and back, and no more is kept") {
  const OpTable several = layer_ops(mamba_layer, /*one_sequence=*/false);
  CHECK(kept_bytes(stored_tensors(several, over_ranks)) == layer_saves(mamba_layer, over_ranks));
  CHECK(several.ops().size() == single_table(mamba_layer).ops().size() + 2);
}

TEST_CASE("mamba: parameters are those of two linears, a convolution of four taps, and of heads") {
  static_assert(parameters(single_table(mamba_layer), {}) ==
                h * (2 * H * P + 2 * G * S + H) + 5 * (H * P + 2 * G * S) + 3 * H + H * P + H * P * h + h);
  static_assert(parameters(single_table(mamba_layer), over_ranks) - h ==
                (parameters(single_table(mamba_layer), {}) - h) /
                    t);  // all but the normalization of its input
}

TEST_CASE("mamba: FLOPs are those of two linears and of the products in chunks of 128") {
  static_assert(forward_flops(single_table(mamba_layer), {}, every_op(single_table(mamba_layer))) ==
                2 * s * b * h * (2 * H * P + 2 * G * S + H) + 2 * s * b * H * P * h +
                    2 * 128 * s * b * G * S + 4 * s * b * H * P * S + 2 * 128 * s * b * H * P);
}

TEST_CASE("mamba: ranks that share a sequence change tokens for heads, and keep and compute as much each") {
  static_assert(c * layer_saves(mamba_layer, over_sequence) == layer_saves(mamba_layer, over_ranks));
  Expr sent;
  for (const Collective& it : collectives(single_table(mamba_layer), over_sequence)) {
    if (it.axis == ParallelAxis::context) sent += it.bytes;
  }
  CHECK(sent == (6 * s * b * H * P + 4 * s * b * G * S + 2 * s * b * H) / (c * t));
}

TEST_CASE("layers of one part: attention and an MLP apart keep and hold what the layer of both does") {
  Architecture both = attention_layer;
  both.parts = LayerParts::both;
  CHECK(layer_saves(attention_layer, over_ranks) + layer_saves(mlp_layer, over_ranks) ==
        layer_saves(both, over_ranks));
  CHECK(parameters(single_table(attention_layer), {}) + parameters(single_table(mlp_layer), {}) ==
        parameters(single_table(both), {}));
}

TEST_CASE("latent experts: rows and weights are of the latent width, and two projections beside them") {
  const Architecture plain = behind_latent(false);
  const Architecture latent = behind_latent(true);
  const auto of_hidden = [](const Expr& expr) { return expr.substitute(Symbol::expert_latent, h); };
  CHECK(parameters(single_table(latent), {}, WeightClass::expert) == 2 * E * D * g);
  CHECK(of_hidden(parameters(single_table(latent), {})) == parameters(single_table(plain), {}) + 2 * h * h);
  CHECK(layer_saves(latent, over_ranks) - layer_saves(plain, over_ranks) ==
        2 * q * I * s * b * (D - h) / t + 2 * s * b * D / t);  // what experts read, and what latent_up reads
  Expr sent;
  const Sharding spread{.tensor = true, .sequence = true, .beside = {{ParallelAxis::expert, y}}};
  for (const Collective& it : collectives(single_table(latent), spread)) {
    if (it.axis == ParallelAxis::expert) sent += it.bytes;
  }
  CHECK(sent == (4 * D + 4) * q * I * s * b / t);
}

TEST_CASE("mamba: bytes of a model file's layers are those of a list of its tensors") {
  rc::check([] {
    const auto power = [](int most) { return std::int64_t{1} << *rc::gen::inRange(0, most + 1); };
    const std::int64_t groups = power(3);
    const std::int64_t heads = groups * power(4);
    const std::int64_t size = 8 * power(3);
    const std::int64_t state = 8 * power(4);
    const std::int64_t hidden = 64 * power(4);
    const std::int64_t tokens = 128 * power(4);
    const std::int64_t t = std::int64_t{1} << *rc::gen::inRange(0, 2);
    RC_PRE(groups % t == 0);
    Transformer model = nano();
    model.hidden = hidden;
    for (LayerDescription& kind : model.layer_kinds) {
      if (!kind.architecture.mixers.mamba) continue;
      kind.architecture.mixers.mamba =
          Mamba{.heads = heads, .head_size = size, .groups = groups, .state_size = state};
    }
    const Strategy strategy{.tensor_parallel = t, .data_parallel = 1, .sequence_parallel = t > 1};
    const Workload workload{.global_batch = 1, .sequence = tokens};
    const ModelLayers layers = layers_of(model, LayerChoices{.micro_batch = 1});
    const auto kind = std::find_if(layers.kinds.begin(), layers.kinds.end(),
                                   [](const LayerKind& it) { return it.name == "mamba"; });
    RC_ASSERT(kind != layers.kinds.end());
    const Bindings letters = bindings_of(kind->sizes, bindings(model, strategy, workload));
    const Expr kept = kept_bytes(stored_tensors(kind->ops, sharding_of(model, strategy), {}, Detail::exact));
    const std::int64_t inner = heads * size;
    struct Tensor {
      std::int64_t elements;
      std::int64_t bytes;
    };
    const std::vector<Tensor> tensors{{tokens * hidden, 2},          // input of the normalization
                                      {tokens, 4},                   // its deviations
                                      {tokens * hidden, 2},          // input of in_proj
                                      {tokens * inner, 2},           // z
                                      {tokens * inner, 2},           // x
                                      {tokens * groups * state, 2},  // B
                                      {tokens * groups * state, 2},  // C
                                      {tokens * heads, 2},           // dt
                                      {tokens * inner, 2},           // output before the gate
                                      {3 * heads, 4},                // A, exp A, dt bias
                                      {tokens * inner, 2},           // input of the second normalization
                                      {tokens * groups, 4},          // its deviations
                                      {tokens * inner, 2}};          // input of out_proj
    double sum = 0;
    for (const Tensor& tensor : tensors) sum += static_cast<double>(tensor.elements * tensor.bytes);
    RC_ASSERT(kept.evaluate(letters) == sum / static_cast<double>(t));
  });
}

TEST_CASE("mamba: heads and groups are whole on every rank, named where they are not") {
  const auto problems = [](const Strategy& strategy) {
    return illegalities(nano(), strategy, {.global_batch = 64, .sequence = 8192}, {});
  };
  CHECK(problems({.tensor_parallel = 2, .data_parallel = 4, .sequence_parallel = true}).empty());
  CHECK(problems({.tensor_parallel = 2, .context_parallel = 4, .data_parallel = 1, .sequence_parallel = true})
            .empty());
  const auto mentions = [&](const Strategy& strategy, std::string_view what) {
    for (const Problem& problem : problems(strategy)) {
      if (problem.rule.find(what) != std::string::npos) return true;
    }
    return false;
  };
  CHECK(mentions({.tensor_parallel = 16, .data_parallel = 1, .sequence_parallel = true},
                 "must divide the groups of Mamba heads of 'mamba' layers (8 % 16 = 8)"));
  CHECK(mentions({.tensor_parallel = 2, .context_parallel = 8, .data_parallel = 1, .sequence_parallel = true},
                 "must divide the 4 groups of Mamba heads of 'mamba' layers on each `tensor_parallel` rank: "
                 "replicated"));
}

TEST_CASE("multi-token prediction of layers of one part: a depth has attention and the last MLP") {
  Transformer model = nano();
  model.mtp_layers = 2;
  const ModelLayers layers = layers_of(model);
  for (const LayerKind& kind : layers.kinds) {
    if (!kind.predicts) continue;
    Expr parts;
    for (const LayerKind& part : layers.kinds) {
      if (part.name == "attention" || part.name == "moe") parts += parameters(part.ops, {});
    }
    CHECK(parameters(kind.ops, {}) == parts);
  }
}

}  // namespace headroom
