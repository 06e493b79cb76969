// What each choice of architecture and kernel changes about the bytes of a layer. K22's layer is proved in
// tests/papers; here every other choice is compared with it.
#include "headroom/model/layer_ops.hpp"

#include <doctest/doctest.h>

#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/parameters.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

constexpr StoredTensors tensors(const Architecture& architecture, Detail detail = Detail::paper) {
  return stored_tensors(layer_ops(architecture), {}, {}, detail);
}
constexpr Expr bytes(const Architecture& architecture, Detail detail = Detail::paper) {
  return kept_bytes(tensors(architecture, detail));
}
constexpr Expr exact(const Architecture& architecture) { return bytes(architecture, Detail::exact); }

constexpr Expr dropped_by_selective(const Architecture& architecture, Detail detail = Detail::paper) {
  const OpTable table = layer_ops(architecture);
  return dropped_bytes(stored_tensors(table, {}, {.ops = core_attention_ops(table)}, detail));
}

// The default architecture with other kernels.
constexpr Architecture with(const Kernels& kernels) { return {.kernels = kernels}; }
constexpr Kernels flash_kernels{.attention = AttentionKernel::flash};
constexpr Architecture flash{.attention_dropout = false, .kernels = flash_kernels};

}  // namespace

TEST_CASE("layer: the default is K22's, with k heads for keys and values, heads of e and a width of f") {
  using namespace symbols;
  static_assert(bytes({}) ==
                10 * s * b * h + 4 * s * b * a * e + 4 * s * b * k * e + 5 * a * s * s * b + 4 * s * b * f);
}

TEST_CASE("layer: grouped queries keep k heads of K and of V") {
  using namespace symbols;
  static_assert(bytes({}) - bytes({}).substitute(Symbol::key_value_heads, k / 8) ==
                4 * s * b * k * e * 7 / 8);
}

TEST_CASE("layer: repeated keys and values are kept a heads wide, with the indices of the copies") {
  using namespace symbols;
  constexpr Architecture repeated = with({.kv_sharing = KvSharing::repeated});
  static_assert(bytes(repeated) - bytes({}) == 4 * s * b * a * e - 4 * s * b * k * e);
  constexpr Architecture rotated{.positions = Positions::rotary, .kernels = repeated.kernels};
  static_assert(exact(rotated) - bytes(rotated) - (exact({}) - bytes({})) == 16 * a);
}

TEST_CASE("layer: SwiGLU keeps gate and up and the product, and silu(gate) when it is not fused") {
  using namespace symbols;
  constexpr Architecture fused{.activation = Activation::swiglu};
  constexpr Architecture unfused{.activation = Activation::swiglu,
                                 .kernels = {.activation = Fusion::unfused}};
  static_assert(bytes(fused) - bytes({}) == 2 * s * b * f);
  static_assert(bytes(unfused) - bytes(fused) == 2 * s * b * f);
}

TEST_CASE("layer: GeGLU stores what SwiGLU stores") {
  static_assert(bytes({.activation = Activation::geglu}) == bytes({.activation = Activation::swiglu}));
}

TEST_CASE("layer: ReLU's output is the next linear's input, kept once") {
  using namespace symbols;
  static_assert(bytes({}) - bytes({.activation = Activation::relu}) == 2 * s * b * f);
}

TEST_CASE("layer: squared ReLU keeps what it squares") {
  static_assert(bytes({.activation = Activation::squared_relu}) == bytes({}));
}

TEST_CASE("layer: an unfused GeLU keeps its chain of products") {
  using namespace symbols;
  constexpr Architecture unfused = with({.activation = Fusion::unfused});
  static_assert(bytes(unfused) - bytes({}) == 12 * s * b * f);
  static_assert(exact(unfused) - exact({}) == 12 * s * b * f + 24);
}

TEST_CASE("layer: RMSNorm has one statistic where layer norm has two") {
  using namespace symbols;
  constexpr Architecture rms{.normalization = Normalization::rms_norm};
  static_assert(bytes(rms) == bytes({}));
  static_assert(exact({}) - exact(rms) == 2 * (4 * s * b));
}

TEST_CASE("layer: half-precision statistics") {
  using namespace symbols;
  static_assert(exact({}) - exact(with({.norm_statistics = Dtype::half})) == 2 * (2 * 2 * s * b));
}

TEST_CASE(
    "layer: an unfused RMSNorm keeps an fp32 copy, the unscaled output, and in PyTorch 1.13 the squares") {
  using namespace symbols;
  constexpr Architecture fused{.normalization = Normalization::rms_norm};
  constexpr Architecture sum{.normalization = Normalization::rms_norm,
                             .kernels = {.normalization = NormKernel::unfused}};
  constexpr Architecture mean{.normalization = Normalization::rms_norm,
                              .kernels = {.normalization = NormKernel::unfused_mean}};
  static_assert(bytes(sum) - bytes(fused) == 2 * (4 + 2 - 2) * s * b * h);
  static_assert(bytes(mean) - bytes(sum) == 2 * 4 * s * b * h);
}

TEST_CASE("layer: rotary positions make new q and k, and the fused linear's buffer stays with v") {
  using namespace symbols;
  constexpr Architecture one{.positions = Positions::rotary};
  constexpr Architecture separate{.positions = Positions::rotary, .kernels = {.qkv = QkvLinear::separate}};
  static_assert(bytes(one) == bytes({}));
  static_assert(exact(separate) == exact({}));
  static_assert(exact(one) - exact(separate) == 2 * s * b * a * e + 2 * s * b * k * e);
}

TEST_CASE("layer: without dropout there are no masks, and the softmax output is the factor of V") {
  using namespace symbols;
  static_assert(bytes({}) - bytes({.hidden_dropout = false}) == 2 * s * b * h);
  static_assert(bytes({}) - bytes({.attention_dropout = false}) == 3 * a * s * s * b);
}

TEST_CASE("layer: a dropout mask in half precision takes two bytes") {
  using namespace symbols;
  static_assert(bytes(with({.dropout_mask = Dtype::half})) - bytes({}) == 2 * s * b * h + a * s * s * b);
}

TEST_CASE("layer: an fp32 softmax is kept beside its half-precision copy") {
  using namespace symbols;
  static_assert(bytes(with({.softmax_dtype = Dtype::fp32})) - bytes({}) == 2 * a * s * s * b);
  constexpr Architecture no_dropout{.attention_dropout = false, .kernels = {.softmax_dtype = Dtype::fp32}};
  static_assert(bytes(no_dropout) - bytes({.attention_dropout = false}) == 4 * a * s * s * b);
}

TEST_CASE("layer: an fp32 residual stream is what the norms keep") {
  using namespace symbols;
  constexpr Architecture fp32 = with({.residual_dtype = Dtype::fp32});
  static_assert(bytes(fp32) - bytes({}) == 4 * s * b * h);
  static_assert(exact(fp32) - exact({}) == 4 * s * b * h + 2 * (2 * h * 4));
}

TEST_CASE("layer: autocast keeps a half-precision copy of every linear's weights") {
  using namespace symbols;
  static_assert(bytes(with({.weight_copies = true})) - bytes({}) ==
                2 * (2 * h * a * e + 2 * h * k * e + 2 * h * f));
}

TEST_CASE(
    "layer: under a stack's autocast, each linear casts its FP32 input, and norms keep theirs in FP32") {
  using namespace symbols;
  static constexpr StackKernels trainer{.normalization = NormKernel::unfused,
                                        .activation = Fusion::unfused,
                                        .rotary = RotaryKernel::rotate_half,
                                        .qkv = QkvLinear::separate};
  constexpr StackKernels autocast = [] {
    StackKernels kernels = trainer;
    kernels.autocast = true;
    return kernels;
  }();
  // Unscaled outputs of both norms in FP32; copies for two more of q, k and v, and one more of gate and up.
  constexpr Expr activations = 2 * (2 * s * b * h) + 2 * (2 * s * b * h) + 2 * s * b * h;
  constexpr Expr weights = 2 * (2 * h * a * e + 2 * h * k * e + 3 * h * f);
  static_assert(bytes(with_kernels(tests::llama, autocast)) - bytes(with_kernels(tests::llama, trainer)) ==
                activations + weights);
}

TEST_CASE("layer: flash attention keeps the log-sum-exp instead of anything s by s") {
  using namespace symbols;
  static_assert(bytes({}) - bytes(flash) == 5 * a * s * s * b - 4 * a * s * b);
  for (const StoredTensor& it : tensors(flash)) CHECK(it.bytes.power(Symbol::sequence) == 1);
}

TEST_CASE("layer: selective recomputation saves flash attention the log-sum-exp only") {
  using namespace symbols;
  static_assert(dropped_by_selective(flash) == 4 * a * s * b);
}

TEST_CASE("layer: flash attention with dropout keeps the random state") {
  constexpr Architecture dropout = with(flash_kernels);
  static_assert(bytes(dropout) == bytes(flash));
  static_assert(exact(dropout) - exact(flash) == 16);
  static_assert(dropped_by_selective(dropout, Detail::exact) - dropped_by_selective(flash, Detail::exact) ==
                16);
}

TEST_CASE("layer: batch-first flash attention copies, and keeps its output in both orders") {
  using namespace symbols;
  constexpr Architecture copied{
      .attention_dropout = false,
      .kernels = {.attention = AttentionKernel::flash, .layout = AttentionLayout::batch_first}};
  static_assert(exact(copied) - exact(flash) == 2 * s * b * a * e);
}

TEST_CASE("layer: composite attention keeps a scaled copy of q, which leaves q in a shared buffer") {
  using namespace symbols;
  constexpr Architecture math{.attention_dropout = false,
                              .kernels = {.attention = AttentionKernel::sdpa_math}};
  static_assert(bytes(math) == bytes({.attention_dropout = false}));
  constexpr Expr scale = 4;  // of the fused softmax, which composite attention has not
  static_assert(exact(math) - exact({.attention_dropout = false}) == 2 * s * b * a * e - scale);
}

TEST_CASE("layer: biases change parameters, not bytes") {
  using namespace symbols;
  constexpr Architecture none{.linear_bias = false, .qkv_bias = false};
  static_assert(exact(none) == exact({}));
  constexpr Expr biases = parameters(layer_ops({}), {}) - parameters(layer_ops(none), {});
  static_assert(biases == a * e + 2 * k * e + f + 2 * h);
}

TEST_CASE("layer: parameters") {
  using namespace symbols;
  constexpr Architecture llama{.activation = Activation::swiglu,
                               .normalization = Normalization::rms_norm,
                               .linear_bias = false,
                               .qkv_bias = false};
  static_assert(parameters(layer_ops(llama), {}) == 2 * h * a * e + 2 * h * k * e + 3 * h * f + 2 * h);
}

TEST_CASE("layer: every value is made before it is read") {
  constexpr auto ordered = [](const OpTable& table) {
    for (std::size_t i = 0; i < table.ops().size(); ++i) {
      for (const ValueId input : table.ops()[i].inputs) {
        if (table[input].producer >= static_cast<int>(i)) return false;
      }
    }
    return true;
  };
  static_assert(ordered(layer_ops({})));
  static_assert(ordered(layer_ops(flash)));
  static_assert(ordered(layer_ops({.activation = Activation::swiglu, .positions = Positions::rotary})));
}

}  // namespace headroom
