// Theorems about context parallelism: what a rank keeps, computes, holds and sends, whatever the layer; then what is legal.
#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/context.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/op_cost.hpp"
#include "model/architectures.hpp"
#include "time/a100.hpp"

namespace headroom {
namespace {

using namespace symbols;

constexpr Sharding one_part{.tensor = true, .sequence = true};

constexpr Sharding in_parts(CpComm how) {
  Sharding sharding = one_part;
  sharding.beside.push_back({ParallelAxis::context, c});
  sharding.cp_comm = how;
  return sharding;
}

constexpr Expr kept(const Architecture& architecture, const Sharding& sharding) {
  return kept_bytes(stored_tensors(layer_ops(architecture), sharding));
}

struct Sent {
  Expr forward;
  Expr backward;
};

// Bytes that a layer sends from one context-parallel rank.
constexpr Sent sent(CpComm how, Precision precision = Precision::bf16) {
  const OpTable table = layer_in(layer_ops(tests::llama), precision, {.attention = true});
  Sent sum;
  for (const Collective& it : collectives(table, in_parts(how))) {
    if (it.axis != ParallelAxis::context) continue;
    const Expr forward = wire_bytes(forward_kind(it.name), it.bytes, ranks_of(it));
    sum.forward += forward;
    sum.backward += wire_bytes(backward_kind(it.name), it.backward_bytes, ranks_of(it));
    if (it.regathers) sum.backward += forward;
  }
  return sum;
}

// Of one rank, keys and values, and queries, at 16 bits.
constexpr Monomial kv = 4 * s * b * k * e / (c * t);
constexpr Monomial query = 2 * s * b * a * e / (c * t);

}  // namespace

TEST_CASE(
    "context parallelism: s/c stands for s in every term of what a layer keeps per token [K22 table 2]") {
  static_assert(kept({}, in_parts(CpComm::p2p)) == kept({}, one_part) / c);
  static_assert(kept(tests::llama, in_parts(CpComm::p2p)) == kept(tests::llama, one_part) / c);
  static_assert(kept(tests::llama, in_parts(CpComm::all_gather)) == kept(tests::llama, one_part) / c);
  for (const Activation activation : {Activation::gelu, Activation::swiglu}) {
    for (const Normalization norm : {Normalization::layer_norm, Normalization::rms_norm}) {
      for (const bool dropout : {false, true}) {
        Architecture architecture = tests::llama;
        architecture.activation = activation;
        architecture.normalization = norm;
        architecture.hidden_dropout = architecture.attention_dropout = dropout;
        CHECK(kept(architecture, in_parts(CpComm::p2p)) == kept(architecture, one_part) / c);
      }
    }
  }
}

TEST_CASE("context parallelism: tokens changed for heads leave the context in both orders") {
  static_assert(kept(tests::llama, in_parts(CpComm::a2a)) == kept(tests::llama, one_part) / c + query);
  static_assert(kept(tests::llama, in_parts(CpComm::a2a_p2p)) == kept(tests::llama, in_parts(CpComm::a2a)));
}

TEST_CASE("context parallelism: a rank computes 1/c of all, core attention with it, and holds all weights") {
  const OpTable table = layer_ops(tests::llama);
  CHECK(forward_flops(table, in_parts(CpComm::p2p), every_op(table)) ==
        forward_flops(table, one_part, every_op(table)) / c);
  CHECK(forward_flops(table, in_parts(CpComm::p2p), core_attention_ops(table)) ==
        4 * s * s * b * a * e / (c * t));
  CHECK(parameters(table, in_parts(CpComm::p2p)) == parameters(table, one_part));
  CHECK(parameters(head_ops({}), in_parts(CpComm::p2p)) == parameters(head_ops({}), one_part));
}

TEST_CASE(
    "context parallelism: a ring sends what a gather does, (c - 1) KV forward and twice that backward") {
  static_assert(sent(CpComm::p2p).forward == Expr(kv) * c - kv);
  static_assert(sent(CpComm::all_gather).forward == sent(CpComm::p2p).forward);
  static_assert(sent(CpComm::p2p).backward == 2 * sent(CpComm::p2p).forward);
  static_assert(sent(CpComm::all_gather).backward == sent(CpComm::p2p).backward);
}

TEST_CASE(
    "context parallelism: an all-to-all sends (c - 1)/c of queries, context, keys and values, each way") {
  constexpr Expr each = Expr(2 * query) + kv;
  static_assert(sent(CpComm::a2a).forward == each - each / c);
  static_assert(sent(CpComm::a2a).backward == sent(CpComm::a2a).forward);
  // Two ranks and as many key/value heads as query heads: what a ring sends forward.
  const auto plain = [](const Expr& expr) {
    return expr.substitute(Symbol::context_parallel, 2).substitute(Symbol::key_value_heads, a);
  };
  CHECK(plain(sent(CpComm::a2a).forward) == plain(sent(CpComm::p2p).forward));
}

TEST_CASE(
    "context parallelism: attention in FP8 sends half of the bytes, but for what its kernel makes at 16 "
    "bits") {
  for (const Precision precision : {Precision::fp8, Precision::fp8_delayed}) {
    CHECK(2 * sent(CpComm::p2p, precision).forward == sent(CpComm::p2p).forward);
    CHECK(2 * sent(CpComm::p2p, precision).backward == sent(CpComm::p2p).backward);
  }
  CHECK(2 * sent(CpComm::a2a, Precision::fp8_delayed).forward == sent(CpComm::a2a).forward);
  CHECK(2 * sent(CpComm::a2a, Precision::fp8_delayed).backward == sent(CpComm::a2a).backward);
  // With current scaling the context, and the gradients of queries, keys and values, are made at 16 bits.
  const auto of_group = [](const Expr& each) { return each - each / c; };
  CHECK(2 * sent(CpComm::a2a, Precision::fp8).forward == of_group(Expr(3 * query) + kv));
  CHECK(2 * sent(CpComm::a2a, Precision::fp8).backward == of_group(Expr(3 * query) + 2 * kv));
}

TEST_CASE("context parallelism: all-to-all in parts of a ring is the one or the other where the parts are") {
  const Sent both = sent(CpComm::a2a_p2p);
  CHECK(both.forward.substitute(Symbol::context_inner, c) == sent(CpComm::a2a).forward);
  CHECK(both.forward.substitute(Symbol::context_inner, 1) == sent(CpComm::p2p).forward);
  CHECK(both.backward.substitute(Symbol::context_inner, 1) == sent(CpComm::p2p).backward);
}

TEST_CASE("context parallelism: keys and values that came round leave the projection's allocation free") {
  const OpTable table = layer_ops(tests::llama);
  const auto exact = [&](const Sharding& sharding) {
    return kept_bytes(stored_tensors(table, sharding, {}, Detail::exact));
  };
  // v is a view into the allocation of q, k and v, which holds them before their rotation.
  const Expr view = (2 * s * b * a * e + 2 * s * b * k * e) / (c * t);
  CHECK(exact(in_parts(CpComm::all_gather)) == exact(in_parts(CpComm::p2p)) + view);
  // What a recomputation starts from is what was there before the exchange.
  const RecomputedOps core{.ops = core_attention_ops(table)};
  CHECK(kept_bytes(stored_tensors(table, in_parts(CpComm::p2p), core)) ==
        kept_bytes(stored_tensors(table, one_part, core)) / c);
}

TEST_CASE("context parallelism: gradients are summed, and optimizer state is sharded, over d c ranks") {
  const Strategy strategy{.tensor_parallel = 2, .context_parallel = 4, .data_parallel = 8};
  CHECK(devices(strategy) == 64);
  CHECK(replicas(strategy) == 32);
  CHECK(data_parallel_group(strategy, 8).ranks == 32);
  CHECK(microbatches(strategy, {.global_batch = 64, .sequence = 8192}) == 8);
}

TEST_CASE("context parallelism: the parts of a group lie in the node, one of each over nodes") {
  const AxisSizes sizes = axis_sizes({.tensor_parallel = 2, .context_parallel = 8, .data_parallel = 2});
  const Groups groups(sizes, 8, 4);
  CHECK(groups.context(GroupPart::whole) == groups[ParallelAxis::context]);
  CHECK(groups.context(GroupPart::inner) == Group{.ranks = 4, .ranks_in_node = 4, .rings_per_node = 2});
  CHECK(groups.context(GroupPart::outer) ==
        Group{.ranks = 2, .ranks_in_node = 1, .rings_per_node = 8, .nodes_spanned = 2});
  Transformer model = read_model("llama-3-8b");
  const auto inner = [&](std::int64_t t, std::int64_t ranks) {
    return context_inner(model,
                         {.tensor_parallel = t, .context_parallel = ranks, .cp_comm = CpComm::a2a_p2p});
  };
  CHECK(inner(1, 16) == 8);  // its key/value heads
  CHECK(inner(2, 16) == 4);
  CHECK(inner(8, 4) == 1);
  CHECK(inner(1, 4) == 4);
}

TEST_CASE("context parallelism: of a ring shows what c - 1 sends take beyond c - 1 of c parts of attention") {
  Request request{.model = read_model("llama-3-8b"), .system = read_system("dgx-h100-80g")};
  request.workload = {.global_batch = 8, .sequence = 131072};
  const OpTable table = layer_ops(request.model, 1);
  std::size_t flash = 0;
  while (table.ops()[flash].kind != OpKind::flash_attention) ++flash;
  const auto exposed = [&](std::int64_t sequence, std::int64_t per_node) {
    request.workload.sequence = sequence;
    const Strategy strategy{.context_parallel = 8};
    const Setting setting = setting_of(request.model, strategy, request.workload, per_node,
                                       *request.system.performance, request.software);
    const Collectives inserted = collectives(table, setting.sharding);
    const OpCost cost = op_cost(table, flash, inserted, setting);
    Seconds ring;
    for (const Collective& it : inserted) {
      if (it.axis != ParallelAxis::context) continue;
      ring += collective_time(CollectiveKind::ring, Bytes(it.bytes.evaluate(setting.letters)),
                              setting.groups.context(it.part), setting.performance);
    }
    const Seconds beside = 7.0 / 8 * cost.forward.attention;
    CHECK(cost.forward.communication == exposed_beside(beside, ring, setting.performance.rates.collectives));
    return cost.forward.communication.count() / ring.count();
  };
  // Behind the attention of 16k tokens a rank it hides, but for what it takes from the kernels beside it; behind that of
  // 512 tokens, over the network, most of it shows.
  const CollectiveRates& rates = request.system.performance->rates.collectives;
  CHECK(exposed(131072, 8) == doctest::Approx(rates.overlap_loss.value));
  CHECK(exposed(4096, 1) > 0.5);
}

TEST_CASE("context parallelism: what is not legal names field and rule") {
  const Transformer model = read_model("llama-3-8b");
  const Workload workload{.global_batch = 8, .sequence = 8192};
  const auto problems = [&](const Strategy& strategy, const Workload& of) {
    return illegalities(model, strategy, of, {});
  };
  const auto where = [&](const Strategy& strategy, const Workload& of) {
    const std::vector<Problem> found = problems(strategy, of);
    return found.empty() ? std::string() : found.front().where;
  };
  CHECK(where({.context_parallel = 4}, workload).empty());
  CHECK(where({.context_parallel = 0}, workload) == "context_parallel");
  CHECK(where({.context_parallel = 3}, workload) == "context_parallel");
  CHECK(where({.context_parallel = 4}, {.global_batch = 8, .sequence = 8196}) == "context_parallel");
  // Of 3 x 8 tokens a rank has 3, which two tensor-parallel ranks do not divide.
  CHECK(where({.tensor_parallel = 4, .context_parallel = 4, .sequence_parallel = true},
              {.global_batch = 8, .sequence = 24}) == "tensor_parallel");
  CHECK(where({.context_parallel = 8, .cp_comm = CpComm::a2a}, workload).empty());
  CHECK(where({.tensor_parallel = 2, .context_parallel = 8, .cp_comm = CpComm::a2a}, workload) ==
        "context_parallel");
  CHECK(where({.context_parallel = 16, .cp_comm = CpComm::a2a_p2p}, workload).empty());
  Strategy parts{.context_parallel = 16, .cp_comm = CpComm::a2a_p2p};
  parts.hierarchical_cp_sizes = {4, 4};
  CHECK(where(parts, workload).empty());
  parts.hierarchical_cp_sizes = {4, 2};
  CHECK(where(parts, workload) == "hierarchical_cp_sizes");
  parts.hierarchical_cp_sizes = {16, 1};
  CHECK(where(parts, workload) == "context_parallel");
  parts.hierarchical_cp_sizes = {4, 4};
  parts.cp_comm = CpComm::p2p;
  CHECK(where(parts, workload) == "hierarchical_cp_sizes");
  Transformer windows = model;
  windows.architecture.window = 1024;
  const auto of_windows = [&](CpComm how) {
    return illegalities(windows, {.context_parallel = 4, .cp_comm = how}, workload, {});
  };
  CHECK(of_windows(CpComm::p2p).front().where == "cp_comm");
  CHECK(of_windows(CpComm::all_gather).empty());
  windows.architecture.attention_sinks = true;
  CHECK(of_windows(CpComm::all_gather).front().where == "cp_comm");
  CHECK(of_windows(CpComm::a2a).empty());
  CHECK(illegalities(read_model("gpt3-175b"), {.context_parallel = 2}, {.global_batch = 8, .sequence = 2048},
                     {})
            .front()
            .where == "context_parallel");
}

}  // namespace headroom
