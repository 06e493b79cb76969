// What a forward pass holds that nothing keeps, counted by hand for a mixture of experts.
#include "headroom/memory/forward.hpp"

#include <doctest/doctest.h>

#include "headroom/memory/backward.hpp"
#include "headroom/model/expert_ops.hpp"
#include "headroom/model/precision.hpp"
#include "headroom/model/precision_ops.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

constexpr double token_count = 64;
constexpr double hidden = 128;
constexpr double per_token = 2;
constexpr double rows = token_count * per_token * hidden * 2;  // bytes of the rows of experts at 16 bits
constexpr double row_of_tokens = token_count * hidden * 2;

LayerKind mixture_kind(Dispatcher dispatcher, Precision precision = Precision::bf16) {
  using namespace symbols;
  const Experts experts{.count = 8, .per_token = 2, .feedforward = 16};
  OpBuilder layer{.arch = {.activation = Activation::swiglu, .linear_bias = false, .experts = experts},
                  .dispatcher = dispatcher,
                  .pads_rows = is_narrow(precision)};
  mixture(layer, layer.table.value({"layer input", s * b * h}));
  return {.name = "mixture", .ops = with_precision(layer.table, precision)};
}

const Sharding in_four{.beside = {{ParallelAxis::expert, symbols::y}}};

Bindings letters() {
  Transformer model{.hidden = 128, .heads = 4, .key_value_heads = 4, .head_size = 32};
  model.layers = model.vocabulary = 1;
  model.architecture.experts = Experts{.count = 8, .per_token = 2, .feedforward = 16};
  return bindings(model, {.data_parallel = 4, .expert_parallel = 4}, {.global_batch = 4, .sequence = 64});
}

BackwardPeak peak_of(const LayerKind& kind) {
  return forward_peak(kind, in_four, {}, Detail::paper, letters());
}

std::string_view op_of(const LayerKind& kind, const BackwardPeak& peak) {
  return kind.ops.ops()[static_cast<std::size_t>(peak.during.op)].name;
}

}  // namespace

TEST_CASE(
    "forward peak: rows that were sent, that came, that go back and that came back are there together") {
  const LayerKind kind = mixture_kind(Dispatcher::alltoall);
  const BackwardPeak peak = peak_of(kind);
  CHECK(op_of(kind, peak) == "unpermute");
  CHECK(peak.during.pass == OpPass::forward);
  CHECK(peak.freed == Bytes(0));
  const Bytes beside_rows = peak.forward_values - Bytes(4 * rows + row_of_tokens);
  CHECK(beside_rows >= Bytes(0));
  CHECK(beside_rows < Bytes(0.05 * rows));  // probabilities
}

TEST_CASE(
    "forward peak: of rows that are padded by copying, both copies are there, before and behind the "
    "experts") {
  const LayerKind kind = mixture_kind(Dispatcher::alltoall, Precision::fp8_blockwise);
  const BackwardPeak peak = peak_of(kind);
  CHECK(op_of(kind, peak) == "unpad_rows");
  const Bytes beside_rows = peak.forward_values - Bytes(6 * rows);
  CHECK(beside_rows >= Bytes(0));
  CHECK(beside_rows < Bytes(0.05 * rows));
}

TEST_CASE("forward peak: it is that of a pass where it is more than the worst moment backward") {
  const auto worst = [](const LayerKind& kind) {
    return pass_peaks(kind, in_four, {}, Bytes(0), Detail::paper, Software(), letters());
  };
  const LayerKind wide = mixture_kind(Dispatcher::alltoall);
  CHECK(worst(wide).forward == peak_of(wide));
  CHECK(worst(wide).backward.during.pass == OpPass::backward);
  LayerKind dense{.name = "layer", .ops = layer_ops({})};
  CHECK(worst(dense).forward.during.op == nowhere);
  CHECK(total(forward_peak(dense, {}, {}, Detail::paper, letters())) <= total(worst(dense).backward));
}

TEST_CASE(
    "forward peak: a recomputation holds as much, with what it has made again and the gradient that it waits "
    "with") {
  const LayerKind kind = mixture_kind(Dispatcher::alltoall);
  const RecomputedOps all{.ops = every_op(kind.ops)};
  const BackwardPeak again = replay_peak(kind, in_four, all, Bytes(0), Detail::paper, letters());
  CHECK(op_of(kind, again) == "unpermute");
  CHECK(again.during.pass == OpPass::recomputation);
  CHECK(again.forward_values == peak_of(kind).forward_values);
  CHECK(again.gradients == Bytes(row_of_tokens));
  CHECK(again.recompute > Bytes(rows));  // the experts' input among it
  // While nothing has been made again, a forward pass that will be recomputed leaves its input alone.
  CHECK(forward_peak(kind, in_four, all, Detail::paper, letters()).freed == Bytes(0));
}

}  // namespace headroom
