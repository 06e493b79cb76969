#include "headroom/model/ends_ops.hpp"

#include <doctest/doctest.h>

#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/parameters.hpp"

namespace headroom {
namespace {

constexpr Expr head_bytes(CrossEntropy cross_entropy, Detail detail, Dtype logits = Dtype::fp32) {
  const Architecture architecture{.kernels = {.cross_entropy = cross_entropy, .logits = logits}};
  return kept_bytes(stored_tensors(head_ops(architecture), {}, {}, detail));
}

// Of the loss alone: without the norm's input and statistics, and the output layer's input.
constexpr Expr loss_bytes(CrossEntropy cross_entropy, Detail detail, Dtype logits = Dtype::fp32) {
  using namespace symbols;
  return head_bytes(cross_entropy, detail, logits) - 4 * s * b * h -
         (detail == Detail::exact ? 8 * s * b : 0);
}

constexpr Expr embedding_bytes(const Architecture& architecture, const Sharding& sharding, Detail detail) {
  return kept_bytes(stored_tensors(embedding_ops(architecture), sharding, {}, detail));
}

}  // namespace

TEST_CASE("head: Megatron's cross-entropy keeps the softmax, the target mask and the masked target") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::vocabulary_parallel, Detail::paper) == 4 * s * b * v);
  static_assert(loss_bytes(CrossEntropy::vocabulary_parallel, Detail::exact) == 4 * s * b * v + 9 * s * b);
}

TEST_CASE(
    "head: plain cross-entropy keeps the log-softmax and the total weight, in the precision of the logits") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::plain, Detail::exact) == 4 * s * b * v + 4);
  static_assert(loss_bytes(CrossEntropy::plain, Detail::exact, Dtype::half) == 2 * s * b * v + 2);
}

TEST_CASE("head: a gathered log-softmax") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::log_softmax_gather, Detail::exact) == 4 * s * b * v);
}

TEST_CASE("head: a fused cross-entropy keeps its gradient in half precision") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::fused, Detail::paper) == 2 * s * b * v);
}

TEST_CASE("head: Transformer Engine's loss keeps an fp32 gradient, and one in chunks no logits") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::fused_fp32, Detail::paper) == 4 * s * b * v);
  static_assert(loss_bytes(CrossEntropy::chunked, Detail::exact) == Expr());
  static_assert(loss_bytes(CrossEntropy::linear_fused, Detail::exact) == 2 * v * h);
  static_assert(logits_at_once(CrossEntropy::chunked) == s * b * v / 8);
}

TEST_CASE("head: a compiled loss keeps the logits themselves, and two numbers of each token") {
  using namespace symbols;
  static_assert(loss_bytes(CrossEntropy::compiled, Detail::paper) == 2 * s * b * v);
  static_assert(loss_bytes(CrossEntropy::compiled, Detail::exact) == 2 * s * b * v + 8 * s * b);
}

TEST_CASE("head: the products of the output layer are the same however the loss is made") {
  constexpr auto flops = [](CrossEntropy kind) {
    const OpTable table = head_ops(Architecture{.kernels = {.cross_entropy = kind}});
    return forward_flops(table, {}, every_op(table));
  };
  for (const auto& spelling : spellings<CrossEntropy>) {
    CAPTURE(std::string(spelling.second));
    CHECK(flops(spelling.first) == flops(CrossEntropy::vocabulary_parallel));
  }
}

TEST_CASE("embedding: the dropout mask, and under tensor parallelism which tokens are this rank's") {
  using namespace symbols;
  static_assert(embedding_bytes({}, {}, Detail::exact) == s * b * h);
  static_assert(embedding_bytes({}, {.tensor = true}, Detail::paper) == s * b * h);
  static_assert(embedding_bytes({}, {.tensor = true}, Detail::exact) == s * b * h + 9 * s * b);
  static_assert(embedding_bytes({}, {.tensor = true, .sequence = true}, Detail::exact) ==
                s * b * h / t + 9 * s * b);
}

TEST_CASE("embedding: nothing is kept without dropout") {
  static_assert(embedding_bytes({.hidden_dropout = false}, {}, Detail::exact) == 0);
}

TEST_CASE("embedding: parameters, with a position table where positions are learned") {
  using namespace symbols;
  static_assert(parameters(embedding_ops({}), {}) == v * h + x * h);
  static_assert(parameters(embedding_ops({.positions = Positions::rotary}), {}) == v * h);
  static_assert(parameters(embedding_ops({}), {.tensor = true}) == v * h / t + x * h);
}

TEST_CASE("head: parameters") {
  using namespace symbols;
  static_assert(parameters(head_ops({}), {}) == v * h + 2 * h);
  static_assert(parameters(head_ops({}), {.tensor = true}) == v * h / t + 2 * h);
}

}  // namespace headroom
