// Multi-token prediction: what its tables keep and compute, and that it stands on the last pipeline rank.
#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {
namespace {

constexpr Architecture predicting() {
  Architecture architecture;
  architecture.normalization = Normalization::rms_norm;
  return architecture;
}

constexpr Expr kept_of(const OpTable& table) {
  return kept_bytes(stored_tensors(table, {}, {}, Detail::paper));
}

Request request_with(std::int64_t depths, std::int64_t pipeline_parallel) {
  Transformer model = with_layers(read_model("deepseek-v3"), 8);
  model.mtp_layers = depths;
  return {.model = model,
          .system = read_system("dgx-h100-80g"),
          .software = read_software("megatron-2022"),
          .strategy = {.tensor_parallel = 2,
                       .pipeline_parallel = pipeline_parallel,
                       .expert_parallel = 2,
                       .sequence_parallel = true},
          .workload = {.global_batch = 8, .sequence = 4096}};
}

Plan plan_with(std::int64_t depths, std::int64_t pipeline_parallel,
               RecomputePolicy policy = RecomputePolicy::none) {
  Request request = request_with(depths, pipeline_parallel);
  request.strategy.recompute.policy = policy;
  return account(evaluate(request));
}

}  // namespace

TEST_CASE(
    "prediction: what joins an embedding to hidden states keeps both, and both normalized side by side") {
  using namespace symbols;
  const OpTable input = prediction_input_ops(predicting());
  CHECK(kept_of(input) == 8 * s * b * h);
  CHECK(parameters(input, {}) == 2 * h * h + 2 * h);
  CHECK(forward_flops(input, {}, every_op(input)) == 4 * s * b * h * h);
}

TEST_CASE(
    "prediction: its head keeps and computes what the head does, and has a normalization of its own alone") {
  using namespace symbols;
  const OpTable head = head_ops(predicting());
  const OpTable ahead = prediction_head_ops(predicting());
  CHECK(kept_of(ahead) == kept_of(head));
  CHECK(forward_flops(ahead, {}, every_op(ahead)) == forward_flops(head, {}, every_op(head)));
  CHECK(parameters(ahead, {}) == Expr(h));
  CHECK(parameters(prediction_embedding_ops(predicting()), {}) == Expr());
}

TEST_CASE("prediction: only the last pipeline rank has more, and a copy of the embedding") {
  const Plan without = plan_with(0, 4);
  const Plan with = plan_with(1, 4);
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(with.ranks[rank] == without.ranks[rank]);
  const double ranks = 2;  // tensor-parallel
  const Request request = request_with(1, 4);
  const Transformer& model = request.model;
  const ModelParameters parts = model_parameters(model, request.strategy, request.workload);
  const double copy = real(padded_vocabulary(model, 2)) * real(model.hidden) / ranks;
  CHECK(parts.copied == copy);
  const ModelLayers layers = layers_of(model, request.strategy);
  double added = copy;
  for (std::size_t kind = 0; kind < layers.kinds.size(); ++kind) {
    if (layers.kinds[kind].name.starts_with("mtp_")) added += total(parts.kinds[kind]);
  }
  CHECK(with.ranks[3].state.weights.count() - without.ranks[3].state.weights.count() == 2 * added);
  CHECK(with.ranks[3].activations.at_peak.head > without.ranks[3].activations.at_peak.head);

  const Plan alone = plan_with(1, 1);
  const Plan alone_without = plan_with(0, 1);
  CHECK(alone.ranks[0].state.weights.count() - alone_without.ranks[0].state.weights.count() ==
        2 * (added - copy));
}

TEST_CASE("prediction: each depth takes as much again, in memory and in FLOPs") {
  const auto head = [](std::int64_t depths) {
    return plan_with(depths, 4).ranks[3].activations.at_peak.head.count();
  };
  CHECK(head(2) - head(1) == doctest::Approx(head(1) - head(0)).epsilon(1e-12));
  const auto flops = [](std::int64_t depths) {
    const Request request = request_with(depths, 1);
    return model_flops_of(layers_of(request.model))
        .evaluate(bindings(request.model, request.strategy, request.workload));
  };
  CHECK(flops(2) - flops(1) == doctest::Approx(flops(1) - flops(0)).epsilon(1e-12));
}

TEST_CASE(
    "prediction: its layer is recomputed as layers are, by policies and modules and not by names of ops") {
  const ModelLayers layers = layers_of(request_with(1, 4).model);
  for (const LayerKind& kind : layers.kinds) {
    if (kind.position == KindPosition::layer) continue;
    const auto ops = [&](const Recomputation& recompute) {
      return recomputed_ops_of(kind, recompute, {}).ops;
    };
    CAPTURE(kind.name);
    CHECK((ops({.policy = RecomputePolicy::full}) != OpSet()) == kind.predicts);
    CHECK((ops({.policy = RecomputePolicy::ops, .ops = {"moe_act"}}) != OpSet()) == kind.predicts);
    CHECK(ops({.policy = RecomputePolicy::ops, .ops = {"expert_activation"}}) == OpSet());
  }
  const auto last = [](std::int64_t depths, RecomputePolicy policy) {
    return plan_with(depths, 4, policy).ranks[3].activations.at_peak.head.count();
  };
  const double saved = last(1, RecomputePolicy::none) - last(1, RecomputePolicy::full);
  CHECK(saved > 0.3 * (last(1, RecomputePolicy::none) - last(0, RecomputePolicy::none)));
  CHECK(last(0, RecomputePolicy::none) == last(0, RecomputePolicy::full));
}

}  // namespace headroom
