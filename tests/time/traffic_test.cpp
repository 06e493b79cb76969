// The bytes that the kernels of K22's layer move, as polynomials, found by rule from its op table.
#include "headroom/time/traffic.hpp"

#include <doctest/doctest.h>

#include "model/architectures.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

constexpr Sharding sharding = k22::tensor;

constexpr const Op& row(const OpTable& table, std::string_view name) {
  for (const Op& op : table.ops()) {
    if (op.name == name) return op;
  }
  EXPECTS(!"no such op");
  return table.ops()[0];
}

constexpr Expr sum(const StreamingKernels& kernels) {
  Expr bytes;
  for (const StreamingKernel& kernel : kernels) bytes += kernel.bytes;
  return k22::in_its_letters(bytes);
}
constexpr Expr forward(std::string_view op, const Sharding& over = sharding) {
  const OpTable table = layer_ops({});
  return sum(forward_traffic(table, row(table, op), over));
}
constexpr Expr backward(std::string_view op, const Sharding& over = sharding,
                        const TrafficOptions& options = {}) {
  const OpTable table = layer_ops({});
  return sum(backward_traffic(table, row(table, op), over, options));
}

int operations(const StreamingKernels& kernels) {
  int count = 0;
  for (const StreamingKernel& kernel : kernels) count += kernel.operations;
  return count;
}

}  // namespace

TEST_CASE("traffic: forward of K22's layer, read and written") {
  using namespace symbols;
  static_assert(forward("norm_1") == 4 * s * b * h);
  static_assert(forward("qkv") == 12 * s * b * h / t);  // its bias: no elementwise op reads the result
  static_assert(forward("scores") == 0);
  static_assert(forward("softmax") == 4 * a * s * s * b / t);
  static_assert(forward("softmax_dropout") == 5 * a * s * s * b / t);
  static_assert(forward("context") == 4 * s * b * h / t);  // heads merged
  static_assert(forward("projection") == 0);
  static_assert(forward("residual_1") == 7 * s * b * h);
  static_assert(forward("mlp_up") == 0);  // its bias joins the activation
  static_assert(forward("activation") == 16 * s * b * h / t);
  static_assert(forward("residual_2") == 7 * s * b * h);
}

TEST_CASE("traffic: backward of K22's layer") {
  using namespace symbols;
  static_assert(backward("residual_2") == 5 * s * b * h);
  static_assert(backward("mlp_down") == 2 * s * b * h);  // bias gradient
  static_assert(backward("activation") == 24 * s * b * h / t);
  static_assert(backward("mlp_up") == 8 * s * b * h / t);              // bias gradient
  static_assert(backward("norm_2") == 6 * s * b * h + 6 * s * b * h);  // and the residual's gradient added
  static_assert(backward("context") == 4 * s * b * h / t);
  static_assert(backward("softmax_dropout") == 5 * a * s * s * b / t);
  static_assert(backward("softmax") == 6 * a * s * s * b / t);
  static_assert(backward("qkv") == 12 * s * b * h / t + 6 * s * b * h / t);  // concatenated; bias gradient
  static_assert(backward("norm_1") == 12 * s * b * h);
}

TEST_CASE("traffic: sequence parallelism divides what is on sequence shards") {
  using namespace symbols;
  static_assert(forward("norm_1", k22::tensor_sequence) == 4 * s * b * h / t);
  static_assert(backward("residual_1", k22::tensor_sequence) == 5 * s * b * h / t);
  static_assert(backward("projection", k22::tensor_sequence) == 2 * s * b * h / t);
  static_assert(forward("activation", k22::tensor_sequence) == forward("activation"));
}

TEST_CASE("traffic: how gradients accumulate") {
  using namespace symbols;
  constexpr TrafficOptions half{.gradients = Dtype::half};
  constexpr TrafficOptions fp32{.accumulation = GradientAccumulation::separate};
  static_assert(backward("mlp_down", sharding, half) - backward("mlp_down") == 6 * 4 * h * h / t);
  static_assert(backward("mlp_down", sharding, fp32) - backward("mlp_down") == 10 * 4 * h * h / t);
}

TEST_CASE("traffic: a normalization whose parameters have a kernel of their own reads everything again") {
  using namespace symbols;
  constexpr TrafficOptions two{.norm_backward = NormBackward::two_kernels};
  static_assert(backward("norm_1", sharding, two) - backward("norm_1") == 4 * s * b * h);
}

TEST_CASE("traffic: without dropout a residual add has no backward kernel") {
  constexpr Architecture plain{.hidden_dropout = false, .attention_dropout = false};
  const OpTable table = layer_ops(plain);
  CHECK(backward_traffic(table, row(table, "residual_1"), sharding, {}).empty());
  using namespace symbols;
  CHECK(sum(forward_traffic(table, row(table, "residual_1"), sharding)) == 6 * s * b * h);
}

TEST_CASE("traffic: grouped key/value heads, rotary positions and gated MLPs follow from their tables") {
  using namespace symbols;
  const OpTable table = layer_ops(tests::llama);
  const auto bytes = [&](std::string_view op, bool forwards) {
    Expr all;
    const auto kernels = forwards ? forward_traffic(table, row(table, op), sharding)
                                  : backward_traffic(table, row(table, op), sharding, {});
    for (const StreamingKernel& kernel : kernels) all += kernel.bytes;
    return all;
  };
  CHECK(bytes("qkv", true) == 0);
  CHECK(bytes("rotary", true) == 4 * s * b * (a + k) * e / t);
  CHECK(bytes("rotary", false) == 4 * s * b * (a + k) * e / t);
  CHECK(bytes("qkv", false) == 4 * s * b * (a + 2 * k) * e / t);  // q, k and v are views: put together again
  CHECK(bytes("activation", true) == 6 * s * b * f / t);
  CHECK(bytes("activation", false) == (2 + 4 + 4) * s * b * f / t);
}

TEST_CASE("traffic: the ends of the model") {
  using namespace symbols;
  const OpTable embedding = embedding_ops({});
  CHECK(sum(forward_traffic(embedding, embedding.ops()[0], sharding)) == 4 * s * b * h);
  CHECK(sum(forward_traffic(embedding, embedding.ops()[1], sharding)) == 11 * s * b * h);
  CHECK(sum(backward_traffic(embedding, embedding.ops()[0], sharding, {})) == 4 * s * b * h + 12 * v * h / t);
  CHECK(sum(backward_traffic(embedding, embedding.ops()[1], sharding, {})) == 9 * s * b * h);
  const OpTable head = head_ops({});
  const Op& loss = row(head, "loss");
  CHECK(sum(forward_traffic(head, loss, sharding)) == 38 * s * b * v / t);
  CHECK(sum(backward_traffic(head, loss, sharding, {})) == 14 * s * b * v / t);
  CHECK(operations(forward_traffic(head, loss, sharding)) == 6);
}

}  // namespace headroom
