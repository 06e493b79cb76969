// torchtitan's checkpointing by op against a count by hand.
#include "headroom/parallel/selective_ops.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/plan/composer.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;
using tests::sparse;

constexpr Sharding sequence_shards{.tensor = true, .sequence = true};

constexpr Expr kept_by_op(const Architecture& architecture, const Sharding& sharding) {
  const OpTable table = layer_ops(architecture);
  return kept_bytes(stored_tensors(table, sharding, selective_ops(table, sharding)));
}

// Experts shared among ranks, so that tokens are sent.
Sharding shared_experts() {
  Sharding sharding;
  sharding.beside.push_back({ParallelAxis::expert, y});
  return sharding;
}

Expr kept_of(const OpTable& table, std::string_view op, const Sharding& sharding) {
  Expr sum;
  for (const StoredTensor& tensor : stored_tensors(table, sharding, selective_ops(table, sharding))) {
    if (tensor.kept && table.ops()[static_cast<std::size_t>(tensor.op)].name == op) sum += tensor.bytes;
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "selective by op: of wq wk wv wo w1 w3 w2, a layer of Llama keeps what the first and every second made") {
  // Its input; wq, wv, w1 and w2; attention's output, with a number of fp32 for each of its rows.
  constexpr Expr by_hand = 2 * s * b * (h + a * e + k * e + f + h) + 2 * s * b * a * e + 4 * s * b * a;
  static_assert(kept_by_op(llama, {}) == by_hand);
}

TEST_CASE("selective by op: wk, wo and w3 run again, and no product else") {
  const OpTable table = layer_ops(llama);
  const RecomputedOps recomputed = selective_ops(table, {});
  CHECK(forward_flops(table, {}, recomputed.ops) - cached_flops(table, {}, recomputed) ==
        2 * s * b * h * (k * e + a * e + f));
}

TEST_CASE(
    "selective by op: what is kept and what is made again is all that the backward pass needs, and what "
    "caches hold beside") {
  const OpTable table = layer_ops(llama);
  const StoredTensors tensors = stored_tensors(table, {}, selective_ops(table, {}));
  // q, of which rotary positions make what attention keeps, and the MLP's output, which no backward pass reads.
  constexpr Expr beside = 2 * s * b * (a * e + h);
  CHECK(kept_bytes(tensors) + dropped_bytes(tensors) == kept_bytes(stored_tensors(table, {})) + beside);
}

TEST_CASE(
    "selective by op: with sequence parallelism reductions are kept, and so is the sum that a kept product "
    "made") {
  constexpr Expr of_all_tokens = 2 * s * b * h;  // w2's, before its reduction
  constexpr Expr scattered = 2 * 2 * s * b * h;  // wo's and w2's, behind them
  static_assert(kept_by_op(llama, sequence_shards) ==
                (kept_by_op(llama, {}) - 2 * s * b * h + scattered) / t + of_all_tokens);
}

TEST_CASE("selective by op: experts run again, but what was sent to them is kept") {
  const OpTable table = layer_ops(sparse);
  const RecomputedOps recomputed = selective_ops(table, shared_experts());
  const auto runs_again = [&](std::string_view op) { return (recomputed.ops & ops_named(table, {op})) != 0; };
  for (const char* const op : {"router", "route", "permute", "sort", "expert_up", "expert_down", "unsort"}) {
    CAPTURE(std::string(op));
    CHECK(runs_again(op));
  }
  CHECK(!runs_again("dispatch"));
  CHECK(!runs_again("combine"));
  CHECK(kept_of(table, "expert_up", shared_experts()) == Expr());
  CHECK(kept_of(table, "route", shared_experts()) == 8 * q * s * b);
}

TEST_CASE(
    "selective by op: a rank that has all experts sends nothing, and keeps no more than tokens' choices") {
  const OpTable table = layer_ops(sparse);
  const RecomputedOps recomputed = selective_ops(table, {});
  CHECK((recomputed.ops & ops_named(table, {"dispatch", "combine"})) ==
        ops_named(table, {"dispatch", "combine"}));
  const auto kept_rows = [&](const Sharding& sharding) {
    Expr sum;
    for (const char* const op : {"dispatch", "sort", "unsort", "combine", "unpermute"})
      sum += kept_of(table, op, sharding);
    return sum;
  };
  CHECK(kept_rows({}) == Expr());
  CHECK(kept_rows(shared_experts()) != Expr());
}

TEST_CASE(
    "selective by op: between full recomputation and none in memory and time, and only on stacks that have "
    "it") {
  Request request{.model = read_model("llama-3-8b"),
                  .system = read_system("dgx-h100-80g"),
                  .software = read_software("torchtitan-2025")};
  request.workload = {.global_batch = 16, .sequence = 8192};
  request.strategy = {.data_parallel = 8, .data_sharding = DataSharding::zero3};
  const auto with = [&](RecomputePolicy policy) {
    request.strategy.recompute = {.policy = policy};
    return account(evaluate(request));
  };
  const Plan none = with(RecomputePolicy::none);
  const Plan by_op = with(RecomputePolicy::selective_op);
  const Plan full = with(RecomputePolicy::full);
  CHECK(peak(full) < peak(by_op));
  CHECK(peak(by_op) < peak(none));
  CHECK(none.timing->iteration.total < by_op.timing->iteration.total);
  CHECK(by_op.timing->iteration.total < full.timing->iteration.total);
  CHECK(by_op.timing->throughput.hfu > by_op.timing->throughput.mfu);
  request.software = read_software("megatron-core-2025");
  request.strategy.data_sharding = DataSharding::none;
  CHECK(illegalities(request, request.strategy).empty());
  request.strategy.recompute.policy = RecomputePolicy::selective_op;
  CHECK(illegalities(request, request.strategy).front().where == "recompute");
}

TEST_CASE("selective ops: a compiled layer keeps nothing that its backward pass does not need") {
  const Transformer model = read_model("llama-3-8b");
  Software software = read_software("torchtitan-2025");
  const Recomputation by_op{.policy = RecomputePolicy::selective_op};
  const auto kept = [&](Launches launches) {
    software.launches = launches;
    const ModelLayers layers = layers_of(model, {}, software);
    const StoredTensors stored =
        stored_tensors(layers.kinds.front().ops, sharding_of(model, {}),
                       recomputed_ops_of(layers.kinds.front(), by_op, {}), Detail::paper);
    std::vector<std::string_view> names;
    for (const StoredTensor& tensor : stored) {
      if (tensor.kept) names.push_back(tensor.name);
    }
    return names;
  };
  const std::vector<std::string_view> eager = kept(Launches::eager);
  std::vector<std::string_view> compiled = kept(Launches::compiled);
  CHECK(std::count(eager.begin(), eager.end(), "mlp output") == 1);
  CHECK(std::count(compiled.begin(), compiled.end(), "mlp output") == 0);
  compiled.emplace_back("mlp output");
  CHECK(compiled.size() == eager.size());
}

}  // namespace headroom
