// Theorems about op tables whose linears multiply fewer than 16 bits.
#include "headroom/model/precision.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/model/precision_ops.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/parameters.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;
using tests::sparse;
using tests::with_shared;

constexpr Sharding narrow_sequence{.tensor = true, .sequence = true};

constexpr OpTable narrow_table(const Architecture& architecture, Precision precision) {
  return with_precision(layer_ops(architecture), precision);
}

// Of a token.
constexpr Expr saved_by_token(const Architecture& architecture, Precision precision,
                              const Sharding& sharding = {}, const RecomputedOps& recomputed = {}) {
  return kept_bytes(stored_tensors(narrow_table(architecture, precision), sharding, recomputed)) / (s * b);
}

// By the linears of experts and the activation between them.
constexpr Expr saved_by_experts_of(Precision precision, const Sharding& sharding) {
  const OpTable table = narrow_table(sparse, precision);
  const OpSet set = ops_named(table, {"expert_up", "expert_activation", "expert_down"});
  Expr sum;
  for (const StoredTensor& tensor : stored_tensors(table, sharding)) {
    if (tensor.name == "expert probabilities") continue;
    if ((set & op_bit(static_cast<std::size_t>(tensor.op))) != 0) sum += tensor.bytes;
  }
  return sum / (s * b);
}

constexpr Expr kept_sums = 4 * a;  // of flash attention, whatever the precision

}  // namespace

TEST_CASE("precision: a dense SwiGLU layer saves 8h + 2(a+2k)e + 2ae + 6f bytes of a token at 16 bits") {
  static_assert(saved_by_token(llama, Precision::bf16) - kept_sums ==
                8 * h + 2 * (a * e + 2 * k * e) + 2 * a * e + 6 * f);
  static_assert(saved_by_token(llama, Precision::bf16) ==
                kept_bytes(stored_tensors(layer_ops(llama), {})) / (s * b));
}

TEST_CASE(
    "precision: with FP8 it saves 6h + 2(a+2k)e + 3ae + 5f, and a 32nd more of copies with block scales") {
  static_assert(saved_by_token(llama, Precision::fp8) - kept_sums ==
                6 * h + 2 * (a * e + 2 * k * e) + 3 * a * e + 5 * f);
  static_assert(saved_by_token(llama, Precision::fp8_delayed) == saved_by_token(llama, Precision::fp8));
  constexpr Expr copies = 2 * h + a * e + f;  // inputs of the four linears
  static_assert(saved_by_token(llama, Precision::mxfp8) ==
                saved_by_token(llama, Precision::fp8) + copies * Expr(Rational(1, 32)));
  static_assert(saved_by_token(llama, Precision::fp8_blockwise) == saved_by_token(llama, Precision::mxfp8));
  static_assert(saved_by_token(llama, Precision::nvfp4) ==
                saved_by_token(llama, Precision::fp8) - copies + copies * Expr(Rational(9, 16)));
}

TEST_CASE("precision: experts save R (h + 5g/z) bytes in place of R (2h + 6g/z)") {
  constexpr Sharding shared{.tensor = true, .sequence = true, .beside = {{ParallelAxis::expert_tensor, z}}};
  constexpr Expr rows = q * I * z / t;
  static_assert(saved_by_experts_of(Precision::bf16, shared) == rows * (2 * h + 6 * g / z));
  static_assert(saved_by_experts_of(Precision::fp8, shared) == rows * (h + 5 * g / z));
  static_assert(saved_by_experts_of(Precision::fp8_blockwise, shared) ==
                rows * (h + g / z) * Expr(Rational(33, 32)) + rows * (4 * g / z));
}

TEST_CASE(
    "precision: the router keeps 16 bits, and shared experts keep what it keeps, but with delayed scaling") {
  const OpTable table = narrow_table(with_shared, Precision::fp8);
  const auto dtype_of = [&](std::string_view name) {
    for (const Op& op : table.ops()) {
      if (op.name == name) return op.products[0].dtype;
    }
    return Dtype::boolean;
  };
  CHECK(dtype_of("router") == Dtype::half);
  for (const char* const linear :
       {"qkv", "projection", "expert_up", "expert_down", "shared_up", "shared_down"}) {
    CHECK(dtype_of(linear) == Dtype::fp8);
  }
  constexpr auto added = [](Precision precision) {
    return saved_by_token(with_shared, precision) - saved_by_token(sparse, precision);
  };
  CHECK(added(Precision::bf16) == 6 * u);
  CHECK(added(Precision::fp8) == 5 * u);
  CHECK(added(Precision::fp8_delayed) == 5 * u + h);
}

TEST_CASE("precision: a copy is made again with what it is made of") {
  const OpTable table = narrow_table(llama, Precision::fp8);
  const OpSet act = ops_named(table, {"activation"});
  const RecomputedOps activation{.ops = act, .discarded = act};
  CHECK(saved_by_token(llama, Precision::fp8, {}, activation) == saved_by_token(llama, Precision::fp8) - f);
  const OpSet both = ops_named(table, {"norm_1", "norm_2"});
  const RecomputedOps norms{.ops = both, .discarded = both};
  CHECK(saved_by_token(llama, Precision::fp8, {}, norms) == saved_by_token(llama, Precision::fp8) - 2 * h);
  // The checkpoint of core attention drops the context, and keeps the copy that the projection needs.
  const RecomputedOps core{.ops = core_attention_ops(table)};
  CHECK(saved_by_token(llama, Precision::fp8, {}, core) ==
        saved_by_token(llama, Precision::fp8) - 2 * a * e - kept_sums);
  // A checkpoint of the MLP keeps its input at 16 bits, and casts it again.
  const RecomputedOps mlp{.ops = ops_named(table, {"mlp_up", "activation", "mlp_down"})};
  CHECK(saved_by_token(llama, Precision::fp8, {}, mlp) == saved_by_token(llama, Precision::fp8) + h - 5 * f);
}

TEST_CASE("precision: attention in the type keeps q, k and v in it, and delayed scaling its context too") {
  constexpr auto saved = [](Precision precision, const RecomputedOps& recomputed = {}) {
    const OpTable table = layer_in(layer_ops(llama), precision, {.attention = true});
    return kept_bytes(stored_tensors(table, {}, recomputed)) / (s * b);
  };
  constexpr Expr qkv = a * e + 2 * k * e;
  static_assert(saved(Precision::fp8) - kept_sums == 6 * h + qkv + 3 * a * e + 5 * f);
  static_assert(saved(Precision::fp8_delayed) - kept_sums == 6 * h + qkv + 2 * a * e + 5 * f);
  static_assert(saved(Precision::mxfp8) ==
                saved_by_token(llama, Precision::mxfp8) - 2 * qkv + qkv * Expr(Rational(33, 32)));
  static_assert(saved(Precision::bf16) == saved_by_token(llama, Precision::bf16));
  // The kernel casts what it is given: its checkpoint starts from 16 bits, as without.
  const OpTable table = layer_in(layer_ops(llama), Precision::fp8, {.attention = true});
  const RecomputedOps core{.ops = core_attention_ops(table)};
  CHECK(saved(Precision::fp8, core) == saved_by_token(llama, Precision::fp8, {}, core));
}

TEST_CASE("precision: an output layer in the type keeps a copy of its input, and 16 bits of its weights") {
  const OpTable plain = head_ops(llama);
  const OpTable narrow = with_narrow_output_layer(plain, Precision::mxfp8);
  constexpr auto saved = [](const OpTable& table) { return kept_bytes(stored_tensors(table, {})); };
  CHECK(saved(plain) - saved(narrow) == s * b * h * Expr(Rational(31, 32)));
  CHECK(narrow_output_weights(narrow, {}) == Expr(v * h));
  CHECK(narrow_weights(narrow, {}, WeightClass::dense) == Expr());
  CHECK(parameters(narrow, {}) == parameters(plain, {}));
}

TEST_CASE("precision: layers at either end that stay at 16 bits are kinds of their own") {
  Transformer model{
      .hidden = 64, .feedforward = 256, .heads = 4, .key_value_heads = 4, .head_size = 16, .layers = 12};
  model.architecture = llama;
  const LayerChoices all{.precision = Precision::fp8};
  LayerChoices inner = all;
  inner.scope = {.bf16_layers_at_start = 1, .bf16_layers_at_end = 3};
  const auto runs_of = [](const ModelLayers& layers) {
    std::vector<std::pair<std::string, std::int64_t>> runs;
    for (const LayerRun& run : layers.runs) runs.emplace_back(layers.kinds[run.kind].name, run.count);
    return runs;
  };
  using Runs = std::vector<std::pair<std::string, std::int64_t>>;
  CHECK(runs_of(layers_of(model, inner)) ==
        Runs{{"embedding", 1}, {"dense_bf16", 1}, {"dense", 8}, {"dense_bf16", 3}, {"head", 1}});
  // Each as in a model of which all layers are so.
  const ModelLayers mixed = layers_of(model, inner);
  const ModelLayers at_half = layers_of(model);
  const ModelLayers narrow = layers_of(model, all);
  const auto saved = [](const LayerKind& kind) { return kept_bytes(stored_tensors(kind.ops, {})); };
  CHECK(saved(mixed.kinds[0]) == saved(at_half.kinds[0]));
  CHECK(saved(mixed.kinds[1]) == saved(narrow.kinds[0]));
  // Numbers that leave none, or are no numbers of layers, are refused elsewhere and change no count here.
  for (const std::int64_t layers : {-1, 0, 12, 100}) {
    inner.scope = {.bf16_layers_at_start = layers, .bf16_layers_at_end = layers};
    CHECK(layer_count(layers_of(model, inner)) == 12);
  }
  inner.precision = Precision::bf16;
  CHECK(runs_of(layers_of(model, inner)) == Runs{{"embedding", 1}, {"layer", 12}, {"head", 1}});
}

TEST_CASE("precision: gathers move bytes of the type, sums over ranks those of 16 bits") {
  const OpTable table = narrow_table(llama, Precision::fp8);
  for (const Collective& collective : collectives(table, narrow_sequence)) {
    const Expr gathered = s * b * h;
    const bool before = enters(collective.name);
    CHECK(Expr(before ? collective.bytes : collective.backward_bytes) == gathered);
    CHECK(Expr(before ? collective.backward_bytes : collective.bytes) == 2 * gathered);
  }
  // Without sequence parallelism nothing is gathered.
  for (const Collective& collective : collectives(table, {.tensor = true})) {
    CHECK(Expr(collective.bytes) == 2 * s * b * h);
    CHECK(collective.bytes == collective.backward_bytes);
  }
}

TEST_CASE("precision: no FLOP and no weight more or less") {
  for (const PrecisionRow& row : precisions) {
    const OpTable plain = layer_ops(with_shared);
    const OpTable narrow = narrow_table(with_shared, row.precision);
    CHECK(forward_flops(narrow, narrow_sequence, every_op(narrow)) ==
          forward_flops(plain, narrow_sequence, every_op(plain)));
    CHECK(parameters(narrow, narrow_sequence) == parameters(plain, narrow_sequence));
  }
}

namespace {

constexpr Sharding narrow_experts{.beside = {{ParallelAxis::expert}}};

const StoredTensor* stored(const StoredTensors& tensors, const OpTable& table, std::string_view op,
                           std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const StoredTensor& tensor) {
    return tensor.name == name && table.ops()[static_cast<std::size_t>(tensor.op)].name == op;
  });
  return found == tensors.end() ? nullptr : &*found;
}

// The table of a layer of llama, or of experts, under these choices.
OpTable table_under(const Architecture& architecture, const LayerChoices& choices) {
  Transformer model;
  model.architecture = architecture;
  model.layers = 1;
  return layers_of(model, choices).kinds[0].ops;
}

}  // namespace

TEST_CASE("precision: a SwiGLU saves its input in FP8, in any precision of linears") {
  for (const Precision precision : {Precision::bf16, Precision::fp8}) {
    const OpTable table = table_under(llama, {.precision = precision, .scope = {.activation_input = true}});
    const StoredTensors tensors = stored_tensors(table, {});
    const StoredTensor* const input = stored(tensors, table, "activation", "FP8 input");
    REQUIRE(input != nullptr);
    CHECK(input->bytes == 2 * s * b * f);
    CHECK(stored(tensors, table, "activation", "gate and up") == nullptr);
  }
}

TEST_CASE("precision: a stack's FP8 parts are those of layers in fewer than 16 bits alone") {
  LayerChoices choices{.precision = Precision::fp8_blockwise, .dispatcher = Dispatcher::deepep};
  choices.kernels.fp8_parts = {.activation_input = true, .context = true, .dispatch = true};
  const OpTable table = table_under(sparse, choices);
  const StoredTensors tensors = stored_tensors(table, {});
  // One copy of the context for both, of 12 bits and a scale for 128 elements.
  const StoredTensor* const context = stored(tensors, table, "flash_attention", "E5M6 copy");
  REQUIRE(context != nullptr);
  CHECK(context->bytes == Expr(Rational(49, 32)) * (a * e * s * b));
  CHECK(stored(tensors, table, "projection", "FP8 copy") == nullptr);

  // What the activation reads is saved even if the activation is made again.
  const RecomputedOps again{.ops = ops_named(table, {"expert_activation"}),
                            .discarded = ops_named(table, {"expert_activation"})};
  const StoredTensors left = stored_tensors(table, {}, again);
  const StoredTensor* const input = stored(left, table, "expert_activation", "FP8 input");
  REQUIRE(input != nullptr);
  CHECK(input->kept);

  const auto sent = [](const OpTable& of, Conjugate name) {
    const Collectives all = collectives(of, narrow_experts);
    return *std::find_if(all.begin(), all.end(), [&](const Collective& it) { return it.name == name; });
  };
  const Collective dispatch = sent(table, Conjugate::dispatch);
  const Collective combine = sent(table, Conjugate::combine);
  CHECK(dispatch.bytes * 64 == dispatch.backward_bytes * 33);
  CHECK(combine.backward_bytes * 64 == combine.bytes * 33);

  choices.precision = Precision::bf16;
  const OpTable half = table_under(sparse, choices);
  CHECK(stored(stored_tensors(half, {}), half, "flash_attention", "E5M6 copy") == nullptr);
  CHECK(sent(half, Conjugate::dispatch).bytes == sent(half, Conjugate::dispatch).backward_bytes);
}

}  // namespace headroom
