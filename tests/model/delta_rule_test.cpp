// Theorems about layers of gated DeltaNet and of Kimi Delta Attention.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;

Architecture mixer_layer(const Mixers& mixers) {
  Architecture layer = llama;
  layer.positions = Positions::none;
  layer.parts = LayerParts::mixer;
  layer.mixers = mixers;
  return layer;
}

OpTable delta_net(std::int64_t heads = 32, bool one_sequence = true) {
  return layer_ops(
      mixer_layer(
          {.gated_delta_net =
               GatedDeltaNet{.heads = heads, .head_size = 128, .key_heads = 16, .key_head_size = 128}}),
      one_sequence);
}
OpTable kimi_delta() {
  return layer_ops(mixer_layer({.kimi_delta = KimiDelta{.heads = 32, .head_size = 128}}),
                   /*one_sequence=*/true);
}

constexpr Sharding tensor_ranks{.tensor = true, .sequence = true};
constexpr Sharding context_ranks{.tensor = true, .sequence = true, .beside = {{ParallelAxis::context, c}}};

Expr saves(const OpTable& table, const Sharding& sharding = tensor_ranks) {
  return kept_bytes(stored_tensors(table, sharding));
}

Expr sent_between_context_ranks(const OpTable& table) {
  Expr sent;
  for (const Collective& it : collectives(table, context_ranks)) {
    if (it.axis == ParallelAxis::context) sent += it.bytes;
  }
  return sent;
}

Strategy with_modules(std::vector<std::string> modules) {
  Strategy strategy{.data_parallel = 1};
  strategy.recompute = {.policy = RecomputePolicy::ops, .ops = std::move(modules)};
  return strategy;
}

}  // namespace

TEST_CASE("gated DeltaNet: a layer saves q, k and v around the convolution, scores of chunks, and outputs") {
  CHECK(saves(delta_net()) == 4 * s * b * h / t + s * b * (8 * G * S + 4 * H * S + 12 * H * P + 142 * H) / t);
  // Without repeated heads, q and k after the convolution are normalized in place of being saved twice.
  CHECK(saves(delta_net(16)) == saves(delta_net()) - 4 * s * b * G * S / t);
  CHECK(saves(delta_net(32, /*one_sequence=*/false)) == saves(delta_net()));
}

TEST_CASE("gated DeltaNet: parameters are those of two linears, a convolution of four taps, and of heads") {
  CHECK(parameters(delta_net(), {}) ==
        h * (2 * G * S + 2 * H * P + 2 * H) + 4 * (2 * G * S + H * P) + 2 * H + P + H * P * h + h);
}

TEST_CASE("gated DeltaNet: FLOPs are those of two linears and of the products in chunks of 64") {
  CHECK(forward_flops(delta_net(), {}, every_op(delta_net())) ==
        2 * s * b * h * (2 * G * S + 2 * H * P + 2 * H) + 2 * s * b * H * P * h + 6 * 64 * s * b * H * S +
            6 * s * b * H * S * P + 2 * 128 * s * b * H * P);
}

TEST_CASE("Kimi Delta Attention: what a layer saves and holds") {
  CHECK(saves(kimi_delta()) == 4 * s * b * h / t + 4 * s * b * P / t + s * b * (22 * H * P + 260 * H) / t);
  CHECK(parameters(kimi_delta(), {}) ==
        3 * h * H * P + 2 * h * P + 2 * P * H * P + h * H + 12 * H * P + H + H * P + P + H * P * h + h);
}

TEST_CASE("delta rule: ranks that share a sequence exchange tokens for heads, and save as much in all") {
  CHECK(c * saves(delta_net(), context_ranks) == saves(delta_net()));
  CHECK(c * saves(kimi_delta(), context_ranks) == saves(kimi_delta()));
  CHECK(sent_between_context_ranks(delta_net()) == s * b * (4 * G * S + 6 * H * P + 4 * H) / (c * t));
  CHECK(sent_between_context_ranks(kimi_delta()) == s * b * (12 * H * P + 2 * H) / (c * t));
}

TEST_CASE("delta rule: gdn_norm_out drops the normalized and the gated output, and computes them again") {
  for (const char* const name : {"qwen3-next-80b-a3b", "kimi-linear-48b-a3b"}) {
    CAPTURE(name);
    const Transformer model = read_model(name);
    const Recomputation recompute = with_modules({"gdn_norm_out"}).recompute;
    std::size_t mixers = 0;
    for (const LayerKind& kind : layers_of(model, LayerChoices{.micro_batch = 1}).kinds) {
      const RecomputedOps again = recomputed_ops_of(kind, recompute, {});
      const Expr dropped =
          saves(kind.ops) - kept_bytes(stored_tensors(kind.ops, tensor_ranks, again, Detail::paper));
      const bool mixes = std::any_of(kind.ops.ops().begin(), kind.ops.ops().end(),
                                     [](const Op& op) { return op.name == "delta_norm"; });
      if (!mixes) {
        CHECK(dropped == Expr(0));
        continue;
      }
      ++mixers;
      CHECK(dropped == 4 * s * b * H * P / t);
    }
    CHECK(mixers > 0);
  }
}

TEST_CASE("delta rule: heads are whole on every rank, named where they are not") {
  const auto problems = [](const char* name, const Strategy& strategy) {
    std::string text;
    for (const Problem& problem :
         illegalities(read_model(name), strategy, {.global_batch = 64, .sequence = 4096}, {}))
      text += problem.where + ": " + problem.rule + "\n";
    return text;
  };
  const auto mentions = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(problems("qwen3-next-80b-a3b",
                 {.tensor_parallel = 2, .data_parallel = 4, .sequence_parallel = true}) == "");
  CHECK(mentions(
      problems("qwen3-next-80b-a3b", {.tensor_parallel = 32, .data_parallel = 1, .sequence_parallel = true}),
      "must divide the key heads of gated DeltaNet"));
  CHECK(mentions(
      problems("kimi-linear-48b-a3b", {.tensor_parallel = 64, .data_parallel = 1, .sequence_parallel = true}),
      "must divide the heads of Kimi Delta Attention"));
}

TEST_CASE("gated attention: a sigmoid of as many numbers as the context is saved and multiplied") {
  Architecture gated = llama;
  gated.attention_gate = true;
  const OpTable plain = layer_ops(llama, /*one_sequence=*/true);
  const OpTable with_gate = layer_ops(gated, /*one_sequence=*/true);
  CHECK(parameters(with_gate, {}) == parameters(plain, {}) + h * a * e);
  CHECK(saves(with_gate) == saves(plain) + 4 * s * b * a * e / t);  // the gate, and the gated context
}

}  // namespace headroom
