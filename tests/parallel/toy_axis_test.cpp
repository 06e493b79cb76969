// What an axis needs beyond its row in core/axis.hpp, taught through public headers alone: an op table whose exchange
// names the axis, the shares that a sharding gives its ranks, and sizes. The rows are an enumeration and its table,
// since every array of sizes and groups is as long as they are, so that no test can add one: this takes the row of
// tokens and gives it a ring of its own, whatever a strategy makes of that row. What a new row itself makes follow
// (groups, communicators, letters and names) tests/parallel/axes_test.cpp asks of every row there is.
#include <doctest/doctest.h>

#include "headroom/memory/reserves.hpp"
#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/time/op_cost.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

constexpr ParallelAxis toy = ParallelAxis::context;
constexpr Sharding toy_whole{.tensor = true, .sequence = true};
constexpr Sharding toy_divided{.tensor = true, .sequence = true, .beside = {{toy, symbols::c}}};

constexpr Architecture toy_flash{
    .hidden_dropout = false, .attention_dropout = false, .kernels = {.attention = AttentionKernel::flash}};

// A normalization, a linear, and a product of scores whose keys come round the ring.
constexpr OpTable ring_table() {
  using namespace symbols;
  OpBuilder builder{.arch = {}};
  const ValueId input = builder.table.value({"input", s * b * h});
  const ValueId normalized = builder.norm("norm", input);
  const ValueId keys = builder.table.value({"keys", s * b * h, Dtype::half, Placement::split});
  builder.linear("keys", normalized, {keys},
                 {OpBuilder::of_tokens({h, Placement::whole}, {{h, Placement::split}})}, {});
  Op scores{.name = "scores", .kind = OpKind::batched_matmul, .region = Placement::split, .inputs = {keys}};
  scores.outputs = {builder.table.value({"sums", s * b * a, Dtype::half, Placement::split})};
  scores.saves = {{keys, why::other_factor}};
  scores.products = {of_heads(e, s)};
  scores.of_all_tokens = {keys};
  builder.table.op(scores);
  return builder.table;
}

}  // namespace

TEST_CASE("toy axis: a rank keeps and computes its part of the tokens") {
  using namespace symbols;
  for (const Architecture& architecture : {Architecture{}, toy_flash}) {
    const OpTable table = layer_ops(architecture);
    for (const RecomputedOps& recomputed :
         {RecomputedOps{}, RecomputedOps{.ops = core_attention_ops(table)}}) {
      CHECK(kept_bytes(stored_tensors(table, toy_divided, recomputed)) ==
            kept_bytes(stored_tensors(table, toy_whole, recomputed)) / c);
    }
    CHECK(forward_flops(table, toy_divided, every_op(table)) ==
          forward_flops(table, toy_whole, every_op(table)) / c);
  }
  CHECK(kept_bytes(stored_tensors(head_ops({}), toy_divided)) ==
        kept_bytes(stored_tensors(head_ops({}), toy_whole)) / c);
}

TEST_CASE("toy axis: weights, their copies and single numbers stay whole") {
  for (const OpTable& table : {layer_ops({}), embedding_ops({}), head_ops({})})
    CHECK(parameters(table, toy_divided) == parameters(table, toy_whole));
  const OpTable table = layer_ops({.kernels = {.weight_copies = true}});
  for (const StoredTensor& it : stored_tensors(table, toy_divided, {}, Detail::exact)) {
    const bool of_weights = it.name == "half-precision weights" || it.name == "scale";
    CHECK(it.bytes.power(Symbol::context_parallel) == (of_weights ? 0 : -1));
  }
}

TEST_CASE("toy axis: collectives carry their axis, and those of tensor parallelism fewer tokens") {
  using namespace symbols;
  const OpTable table = ring_table();
  CHECK(collectives(table, toy_whole).size() == 1);
  const Collectives inserted = collectives(table, toy_divided);
  REQUIRE(inserted.size() == 2);
  CHECK(inserted[0] == Collective{.name = Conjugate::g,
                                  .op = 1,
                                  .bytes = 2 * s * b * h / c,
                                  .backward_bytes = 2 * s * b * h / c,
                                  .regathers = true});
  CHECK(inserted[1] == Collective{.name = Conjugate::pass_on,
                                  .op = 2,
                                  .bytes = 2 * s * b * h / t,
                                  .backward_bytes = 2 * s * b * h / t,
                                  .regathers = true,
                                  .axis = toy});
  CHECK(wire_bytes(forward_kind(inserted[1].name), inserted[1].bytes, c) ==
        2 * s * b * h / t - 2 * s * b * h / (c * t));
}

TEST_CASE("toy axis: its group lies between those of tensor and data parallelism, and takes a communicator") {
  AxisSizes sizes = axis_sizes({.tensor_parallel = 4, .data_parallel = 2});
  const std::int64_t before = communicators(sizes);
  sizes[toy] = 2;
  CHECK(communicators(sizes) == before + 1);
  const Groups groups(sizes, 8);
  CHECK(groups[toy] == Group{.ranks = 2, .ranks_in_node = 2, .rings_per_node = 4});
  CHECK(groups[ParallelAxis::data] ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_spanned = 2});
  // Both hold the same weights.
  CHECK(replica_group(sizes, WeightClass::dense, 8).ranks == 4);
}

TEST_CASE("toy axis: an op runs beside what goes round to it, and again and back in its backward pass") {
  const OpTable table = ring_table();
  k22::Run run = k22::gpt_22b();
  Setting setting = tests::setting(run);
  AxisSizes sizes = axis_sizes(run.strategy);
  sizes[toy] = 2;
  setting.sharding = toy_divided;
  setting.letters.bind(Symbol::context_parallel, 2);
  setting.groups = Groups(sizes, 16);
  const Collectives inserted = collectives(table, setting.sharding);
  const OpCost beside = op_cost(table, 2, inserted, setting);
  const Seconds ring =
      collective_time(CollectiveKind::ring, Bytes(inserted[1].bytes.evaluate(setting.letters)),
                      setting.groups[toy], setting.performance);
  const CollectiveRates& rates = setting.performance.rates.collectives;
  CHECK(ring > Seconds(0));
  // What comes round last has no send beside it.
  CHECK(beside.forward.communication == exposed_beside(0.5 * beside.forward.attention, ring, rates));
  CHECK(beside.backward_data.communication ==
        exposed_beside(0.5 * beside.backward_data.attention, 2 * ring, rates));
}

TEST_CASE("exchanges: all-to-all in a node is its own path, between nodes the NICs decide") {
  const Performance& performance = tests::performance();
  const auto time = [&](CollectiveKind kind, const Group& group) {
    return collective_time(kind, Bytes(1e8), group, performance);
  };
  const Group node{.ranks = 8, .ranks_in_node = 8, .rings_per_node = 1};
  const Group two_nodes{.ranks = 16, .ranks_in_node = 8, .rings_per_node = 1};
  CHECK(time(CollectiveKind::all_to_all, node) == all_to_all_time(Bytes(1e8), 8, performance));
  CHECK(time(CollectiveKind::send_receive, node) == send_receive_time(Bytes(1e8), performance));
  CHECK(time(CollectiveKind::all_to_all, two_nodes) > 2 * time(CollectiveKind::all_to_all, node));
  // Half of a rank's bytes leave the node, where a send moves all of them.
  CHECK(time(CollectiveKind::send_receive, two_nodes) > time(CollectiveKind::all_to_all, two_nodes));
  CHECK(time(CollectiveKind::all_to_all, {}) == Seconds(0));
}

}  // namespace headroom
