// What chains of operators move, against counts made by hand, and what tables that have them keep and move.
#include "headroom/model/chains.hpp"

#include <doctest/doctest.h>

#include "headroom/hardware/software.hpp"
#include "headroom/time/traffic.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

constexpr Architecture gated{.activation = Activation::swiglu,
                             .normalization = Normalization::rms_norm,
                             .positions = Positions::rotary,
                             .linear_bias = false,
                             .qkv_bias = false,
                             .hidden_dropout = false,
                             .attention_dropout = false,
                             .kernels = {.attention = AttentionKernel::flash}};

constexpr StackKernels eager{
    .normalization = NormKernel::composite, .activation = Fusion::unfused, .rotary = RotaryKernel::complex};

struct Moved {
  Expr bytes;
  int operations = 0;
  int operators = 0;
};

constexpr Moved moved(const StackKernels& kernels, std::string_view name, bool backward) {
  const OpTable table = layer_ops(with_kernels(gated, kernels));
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
  constexpr Traffic swiglu = gated_chain("activation", s, Placement::split, false);
  static_assert(swiglu.forward == 4 + 6 && swiglu.backward == 6 + 6 + 6);
}

TEST_CASE("chains: they stand in place of the one kernel that the rule finds, and launch each operator") {
  using namespace symbols;
  CHECK(moved({}, "norm_1", false).bytes == 4 * s * b * h);
  const Moved norm = moved(eager, "norm_1", false);
  CHECK(norm.bytes == 40 * s * b * h);
  CHECK(norm.operations == 1);
  CHECK(norm.operators == 5);
  CHECK(moved(eager, "norm_1", true).bytes == 104 * s * b * h);
  CHECK(moved(eager, "rotary", false).bytes == 20 * s * b * a * e + 20 * s * b * k * e);
  CHECK(moved(eager, "rotary", true).operations == 2);
  CHECK(moved(eager, "activation", true).bytes == 18 * s * b * f);
  CHECK(moved(eager, "residual_1", false).bytes == moved({}, "residual_1", false).bytes);
}

TEST_CASE("chains: a model's own kernels come before the stack's, and a LayerNorm or GeLU has none") {
  Architecture architecture = gated;
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
                 .rotary_kernel = RotaryKernel::complex,
                 .kv_sharing = KvSharing::repeated,
                 .cross_entropy = CrossEntropy::plain,
                 .compiles_loss = true};
  StackKernels kernels = eager;
  kernels.kv_sharing = KvSharing::repeated;
  kernels.cross_entropy = CrossEntropy::plain;
  CHECK(kernels_of(stack) == kernels);
  stack.launches = Launches::compiled;
  CHECK(kernels_of(stack) ==
        StackKernels{.kv_sharing = KvSharing::repeated, .cross_entropy = CrossEntropy::compiled});
  stack.compiles_loss = false;
  CHECK(kernels_of(stack).cross_entropy == CrossEntropy::plain);
  stack.compiles_loss = true;
  stack.cross_entropy = CrossEntropy::chunked;
  CHECK(kernels_of(stack).cross_entropy == CrossEntropy::chunked);
}

}  // namespace headroom
