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
  static_assert(loss_bytes(CrossEntropy::plain_half, Detail::exact) == 2 * s * b * v + 2);
}

TEST_CASE("head: the backward pass of DTensor's loss holds one more tensor of logits") {
  using namespace symbols;
  constexpr Architecture plain{.kernels = {.cross_entropy = CrossEntropy::plain}};
  const auto temporaries = [&](bool distributed) {
    const OpTable head = head_ops(plain, {.distributed = distributed});
    const Op& loss = head.ops()[head.ops().size() - 1];
    Expr sum;
    for (const ValueId value : loss.temporaries) sum += 4 * head[value].elements;
    return sum;
  };
  CHECK(temporaries(false) == 4 * s * b * v);
  CHECK(temporaries(true) == 8 * s * b * v);
}

TEST_CASE("ends: where tensor-parallel ranks divide less of the vocabulary, they hold more of it") {
  using namespace symbols;
  constexpr Sharding tensor{.tensor = true};
  constexpr Architecture half{.kernels = {.cross_entropy = CrossEntropy::plain_half}};
  constexpr VocabularyParallel gathered{EmbeddingParallel::none, LossParallel::gathered};
  constexpr VocabularyParallel none{EmbeddingParallel::none, LossParallel::none};
  static_assert(parameters(embedding_ops({}, gathered), tensor) == v * h + x * h);
  static_assert(parameters(head_ops({}, gathered), tensor) == v * h / t + 2 * h);
  static_assert(parameters(head_ops({}, none), tensor) == v * h + 2 * h);
  const auto loss_of = [&](const VocabularyParallel& vocabulary) {
    return kept_bytes(stored_tensors(head_ops(half, vocabulary), tensor)) - 4 * s * b * h;
  };
  CHECK(loss_of({}) == 2 * s * b * v / t);
  CHECK(loss_of(gathered) == 2 * s * b * v);
  CHECK(loss_of(none) == 2 * s * b * v);
  // A rank that has all rows needs to know of no others.
  CHECK(kept_bytes(stored_tensors(embedding_ops({}, gathered), tensor, {}, Detail::exact)) == s * b * h);
  // Every rank makes all logits, or its part of them.
  const auto flops = [&](const VocabularyParallel& vocabulary) {
    const OpTable head = head_ops({}, vocabulary);
    return forward_flops(head, tensor, every_op(head));
  };
  CHECK(flops(gathered) == 2 * s * b * h * v / t);
  CHECK(flops(none) == 2 * s * b * h * v);
}

TEST_CASE("head: a training loop that refers to the logits keeps them, where nothing has taken their place") {
  using namespace symbols;
  const auto more = [](CrossEntropy kind) {
    const auto kept = [&](bool held) {
      return kept_bytes(stored_tensors(
          head_ops(Architecture{.kernels = {.cross_entropy = kind, .holds_logits = held}}), {}));
    };
    return kept(true) - kept(false);
  };
  CHECK(more(CrossEntropy::plain_half) == 2 * s * b * v);
  CHECK(more(CrossEntropy::plain) == 2 * s * b * v);
  CHECK(more(CrossEntropy::compiled) == Expr());  // which keeps them anyway
  CHECK(more(CrossEntropy::compiled_fp32) == Expr());
  CHECK(more(CrossEntropy::fused) == Expr());  // whose gradient is written over them
  CHECK(more(CrossEntropy::chunked) == Expr());
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
  static_assert(loss_bytes(CrossEntropy::compiled_fp32, Detail::exact) == 4 * s * b * v + 8 * s * b);
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
