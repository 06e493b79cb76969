// What chains of operators move, against counts made by hand, and what tables that have them keep and move.
#include "headroom/model/chains.hpp"

#include <doctest/doctest.h>

#include "headroom/hardware/software.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/time/traffic.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

constexpr StackKernels eager{
    .normalization = NormKernel::composite, .activation = Fusion::unfused, .rotary = RotaryKernel::complex};

struct Moved {
  Expr bytes;
  int operations = 0;
  int operators = 0;
};

constexpr Moved moved(const StackKernels& kernels, std::string_view name, bool backward) {
  const OpTable table = layer_ops(with_kernels(tests::llama, kernels));
  Moved all;
  for (const Op& op : table.ops()) {
    if (op.name != name) continue;
    const StreamingKernels run =
        backward ? backward_traffic(table, op, {}, {}) : forward_traffic(table, op, {});
    for (const StreamingKernel& kernel : run) {
      all.bytes += kernel.bytes;
      all.operations += kernel.operations;
      all.operators += kernel.operators;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("chains: a normalization, a rotation and an activation, operator by operator") {
  using namespace symbols;
  constexpr Traffic torch = norm_chain(NormKernel::composite, "norm", s, Placement::boundary, Dtype::half);
  // to fp32 2+4, square 4+4, mean 4, product 4+4, weight 4+4, to half 4+2
  static_assert(torch.forward == 6 + 8 + 4 + 8 + 8 + 6);
  static_assert(torch.forward_kernels == 6);
  // to fp32; weight: gradient 8, of the weight 12 and 4; product 8, 12 and 4; mean 4; square 8, 8 and 12; sum 12; to half
  static_assert(torch.backward == 6 + (8 + 12 + 4) + (8 + 12 + 4) + 4 + (8 + 8 + 12) + 12 + 6);
  static_assert(torch.backward_kernels == 13);
  constexpr Traffic own = norm_chain(NormKernel::unfused, "norm", s, Placement::boundary, Dtype::half);
  static_assert(own.forward == 6 + 8 + 4 + 8 + 6 + 4);
  static_assert(own.backward == (4 + 6 + 2) + 6 + (8 + 12 + 4) + 4 + (8 + 8 + 12) + 12 + 6);
  // Of an fp32 stream nothing is cast to fp32, nor its gradient to half.
  static_assert(norm_chain(NormKernel::composite, "norm", s, Placement::boundary, Dtype::fp32).forward == 34);
  constexpr Traffic complex = rotary_chain(RotaryKernel::complex, "rotary", s, Placement::split);
  static_assert(complex.forward == 20 && complex.backward == 20);
  constexpr Traffic halves = rotary_chain(RotaryKernel::rotate_half, "rotary", s, Placement::split);
  static_assert(halves.forward == 4 + 2 + 4 + 4 + 6);
  static_assert(halves.backward == 4 + 4 + 2 + 4 + 4 + 6 + 6);
  constexpr Traffic chunks = rotary_chain(RotaryKernel::rotate_chunks, "rotary", s, Placement::split);
  // half negated, chunks together, both products, their sum, and what takes no positions behind it
  static_assert(chunks.forward == 2 + 4 + 4 + 4 + 6 + 4);
  // both products, half negated, chunks together, zeros, two sums
  static_assert(chunks.backward == 4 + 4 + 2 + 4 + 2 + 6 + 6);
  static_assert(chunks.forward_kernels == 6 && chunks.backward_kernels == 7);
  constexpr Traffic swiglu = gated_chain("activation", s, Placement::split, false);
  static_assert(swiglu.forward == 4 + 6 && swiglu.backward == 6 + 6 + 6);
}

TEST_CASE("chains: clamps of both halves, and the activation of clamped halves") {
  using namespace symbols;
  constexpr Traffic together = clamp_chain("clamp", s, Placement::split, true);
  static_assert(together.forward == 4 + 4 + 8 && together.forward_kernels == 3);
  // the gate's comparison and selection, two comparisons, their conjunction and a selection of the other's, both together
  static_assert(together.backward == (3 + 5) + (3 + 3 + 3 + 5) + 8 && together.backward_kernels == 7);
  static_assert(clamp_chain("clamp", s, Placement::split, false).forward == 4 + 4);
  constexpr Traffic clamped = gated_chain("activation", s, Placement::split, false, true);
  // scale, sigmoid, product, shift, product
  static_assert(clamped.forward == 4 + 4 + 6 + 4 + 6 && clamped.forward_kernels == 5);
  // of both factors twice, of the sigmoid, of the scale, and the sum of both uses of the gate
  static_assert(clamped.backward == 12 + 12 + 6 + 4 + 6 && clamped.backward_kernels == 7);
}

TEST_CASE("chains: clamps ahead of an activation are a row of their own, and their outputs are kept") {
  using namespace symbols;
  Architecture architecture = tests::llama;
  architecture.clamped_activation = true;
  const auto kept = [&](const StackKernels& kernels) {
    const OpTable table = layer_ops(with_kernels(architecture, kernels));
    return kept_bytes(stored_tensors(table, {}));
  };
  const Expr one_kernel = kept({});
  CHECK(kept({.clamp = Fusion::unfused}) == one_kernel + 4 * s * b * f);
  // In operators: besides what the activation's input keeps, both clamped halves but for the second, which is shifted; the
  // sigmoid, the activated gate and the shifted second.
  CHECK(kept({.activation = Fusion::unfused, .clamp = Fusion::unfused}) == one_kernel + 8 * s * b * f);
  const OpTable table = layer_ops(with_kernels(architecture, {.clamp = Fusion::unfused}));
  const OpSet clamps = ops_named(table, {"clamp"});
  CHECK(clamps != 0);
  CHECK(ops_named(layer_ops(with_kernels(tests::llama, {.clamp = Fusion::unfused})), {"clamp"}) == 0);
  // Fused, the halves are read and the result is written; else they go through memory once more, clamped.
  const auto forward = [&](const StackKernels& kernels) {
    const OpTable of = layer_ops(with_kernels(architecture, kernels));
    Expr sum;
    for (const Op& op : of.ops()) {
      if (op.name != "clamp" && op.name != "activation") continue;
      for (const StreamingKernel& kernel : forward_traffic(of, op, {})) sum += kernel.bytes;
    }
    return sum;
  };
  CHECK(forward({}) == 6 * s * b * f);
  CHECK(forward({.clamp = Fusion::unfused}) == (6 + 16) * s * b * f);
  CHECK(forward({.activation = Fusion::unfused, .clamp = Fusion::unfused}) == (8 + 24) * s * b * f);
}

TEST_CASE("chains: scaled cosines and sines take the stack's kernel for them") {
  Architecture architecture = tests::llama;
  const StackKernels stack{.scaled_rotary = RotaryKernel::rotate_chunks};
  CHECK(with_kernels(architecture, stack).kernels.rotary == RotaryKernel::fused);
  architecture.scaled_rotary = true;
  CHECK(with_kernels(architecture, stack).kernels.rotary == RotaryKernel::rotate_chunks);
  architecture.kernels.rotary = RotaryKernel::rotate_half;
  CHECK(with_kernels(architecture, stack).kernels.rotary == RotaryKernel::rotate_half);
}

TEST_CASE("chains: they stand in place of the one kernel that the rule finds, and launch each operator") {
  using namespace symbols;
  CHECK(moved({}, "norm_1", false).bytes == 4 * s * b * h);
  const Moved norm = moved(eager, "norm_1", false);
  CHECK(norm.bytes == 40 * s * b * h);
  CHECK(norm.operations == 1);
  CHECK(norm.operators == 5);
  // The layer's input goes round the layer too: its two gradients are added.
  CHECK(moved(eager, "norm_1", true).bytes == (104 + 6) * s * b * h);
  CHECK(moved(eager, "rotary", false).bytes == 20 * s * b * a * e + 20 * s * b * k * e);
  CHECK(moved(eager, "rotary", true).operations == 2);
  CHECK(moved(eager, "activation", true).bytes == 18 * s * b * f);
  CHECK(moved(eager, "residual_1", false).bytes == moved({}, "residual_1", false).bytes);
}

TEST_CASE("chains: a model's own kernels come before the stack's, and a LayerNorm or GeLU has none") {
  Architecture architecture = tests::llama;
  architecture.kernels.normalization = NormKernel::fused;
  CHECK(with_kernels(architecture, eager).kernels.normalization == NormKernel::fused);
  CHECK(with_kernels(architecture, eager).kernels.activation == Fusion::unfused);
  const Architecture gpt = with_kernels(Architecture{}, eager);
  CHECK(gpt.kernels.normalization == NormKernel::fused);
  CHECK(gpt.kernels.activation == Fusion::fused);
}

TEST_CASE("chains: what a stack runs operator by operator is one kernel where it is compiled, its loss too") {
  Software stack{.norm_kernel = NormKernel::composite,
                 .activation_kernel = Fusion::unfused,
                 .clamp_kernel = Fusion::unfused,
                 .rotary_kernel = RotaryKernel::complex,
                 .scaled_rotary_kernel = RotaryKernel::rotate_chunks,
                 .kv_sharing = KvSharing::repeated,
                 .cross_entropy = CrossEntropy::plain,
                 .compiles_loss = true};
  StackKernels kernels = eager;
  kernels.clamp = Fusion::unfused;
  kernels.scaled_rotary = RotaryKernel::rotate_chunks;
  kernels.kv_sharing = KvSharing::repeated;
  kernels.cross_entropy = CrossEntropy::plain;
  CHECK(kernels_of(stack) == kernels);
  stack.launches = Launches::compiled;
  CHECK(kernels_of(stack) == StackKernels{.expert_bias = Fusion::fused,
                                          .kv_sharing = KvSharing::repeated,
                                          .cross_entropy = CrossEntropy::compiled,
                                          .compiled_layers = true});
  stack.compiles_loss = false;
  CHECK(kernels_of(stack).cross_entropy == CrossEntropy::plain);
  stack.compiles_loss = true;
  stack.cross_entropy = CrossEntropy::chunked;
  CHECK(kernels_of(stack).cross_entropy == CrossEntropy::chunked);
}

}  // namespace headroom
