// Theorems about the op table of a mixture of experts.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/collectives.hpp"
#include "headroom/parallel/flops.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/recompute_modules.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/traffic.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

using namespace symbols;
using tests::llama;
using tests::sparse;
using tests::with_shared;

constexpr Sharding unshared{.tensor = true, .sequence = true};
constexpr Sharding shared{
    .tensor = true,
    .sequence = true,
    .beside = {{ParallelAxis::context, c}, {ParallelAxis::expert, y}, {ParallelAxis::expert_tensor, z}}};

constexpr Expr saved(const Architecture& architecture, const Sharding& sharding) {
  return kept_bytes(stored_tensors(layer_ops(architecture), sharding));
}

// Of a token, and without what is kept of the choice of experts.
constexpr Expr saved_by_experts(const Sharding& sharding) {
  const OpTable table = layer_ops(sparse);
  Expr sum;
  for (const StoredTensor& tensor : stored_tensors(table, sharding)) {
    const std::string_view op = table.ops()[static_cast<std::size_t>(tensor.op)].name;
    if (op == "expert_up" || op == "expert_down") sum += tensor.bytes;
    if (op == "expert_activation" && tensor.name != "expert probabilities") sum += tensor.bytes;
  }
  return sum / (s * b);
}

}  // namespace

TEST_CASE("experts: what a rank saves does not depend on how many ranks share the experts") {
  constexpr Sharding many{.tensor = true, .sequence = true, .beside = {{ParallelAxis::expert, y}}};
  static_assert(saved(sparse, many) == saved(sparse, unshared));
  static_assert(saved(with_shared, many) == saved(with_shared, unshared));
}

TEST_CASE("experts: outputs that are weighted are saved for it, in 16 bits or FP32") {
  const auto more = [](ExpertWeighting weighting) {
    Architecture weighted = sparse;
    weighted.kernels.expert_weighting = weighting;
    return saved(weighted, {}) - saved(sparse, {});
  };
  CHECK(more(ExpertWeighting::output) == 2 * q * I * s * b * h);
  CHECK(more(ExpertWeighting::output_fp32) == 4 * q * I * s * b * h);
  // Nothing is weighted after experts whose inputs were.
  Architecture scaled = sparse;
  scaled.experts->scale_inputs = true;
  const Expr before = saved(scaled, {});
  scaled.kernels.expert_weighting = ExpertWeighting::output_fp32;
  CHECK(saved(scaled, {}) == before);
}

TEST_CASE("experts: a rank saves R (2h + 6g/z) bytes of the experts' work, R = z q T I/t") {
  static_assert(saved_by_experts(shared) == q * I * z / (c * t) * (2 * h + 6 * g / z));
}

TEST_CASE(
    "experts: clamps are recomputed, kept and left to the host with the activation that they are ahead of") {
  Architecture architecture = sparse;
  architecture.clamped_activation = true;
  architecture.kernels.clamp = Fusion::unfused;
  const OpTable table = layer_ops(architecture);
  const OpSet both = ops_named(table, {"expert_clamp", "expert_activation"});
  CHECK(ops_among(find_module("moe_act")->ops, table) == both);
  CHECK((ops_among(find_module("moe")->ops, table) & both) == both);
  CHECK(ops_of(*find_offload_module("moe_act"), table) == both);
  CHECK(kept_bytes(stored_tensors(table, shared)) ==
        saved(sparse, shared) + 4 * q * I * z * s * b * g / (c * t * z));
}

TEST_CASE("experts: what adds biases to their output moves what the table states, and nothing by rule") {
  const auto moved = [](Fusion kernel, bool backward) {
    Architecture architecture = sparse;
    architecture.linear_bias = true;
    architecture.kernels.expert_bias = kernel;
    const OpTable table = layer_ops(architecture);
    Expr sum;
    for (const Op& op : table.ops()) {
      if (op.name != "expert_down") continue;
      const StreamingKernels run =
          backward ? backward_traffic(table, op, {}, {}) : forward_traffic(table, op, {});
      for (const StreamingKernel& each : run) sum += each.bytes;
    }
    return sum;
  };
  const Expr element = q * I * s * b * h;
  CHECK(moved(Fusion::unfused, false) == 28 * element);
  CHECK(moved(Fusion::unfused, true) == 40 * element);
  CHECK(moved(Fusion::fused, false) == 4 * element);
  CHECK(moved(Fusion::fused, true) == 2 * element);
}

TEST_CASE("experts: weights are divided by the axes of experts only, and router and norms by none") {
  const OpTable table = layer_ops(sparse);
  CHECK(parameters(table, shared, WeightClass::expert) == 3 * E * h * g / (y * z));
  CHECK(parameters(table, unshared, WeightClass::expert) == 3 * E * h * g);
  CHECK(parameters(table, shared, WeightClass::dense) == parameters(table, unshared, WeightClass::dense));
  CHECK(parameters(table, shared, WeightClass::dense) == 2 * h + E * h + (2 * a * e * h + 2 * k * e * h) / t);
  CHECK(parameters(layer_ops(with_shared), shared, WeightClass::dense) -
            parameters(table, shared, WeightClass::dense) ==
        3 * h * u / t);
}

TEST_CASE("experts: a rank computes 6 q h g of each of its tokens, however experts are shared") {
  const OpTable table = layer_ops(sparse);
  const OpSet experts = ops_named(table, {"expert_up", "expert_down"});
  CHECK(forward_flops(table, shared, experts) == 6 * q * I * s * b * h * g / (c * t));
  CHECK(forward_flops(table, shared, ops_named(table, {"router"})) == 2 * E * s * b * h / (c * t));
}

TEST_CASE(
    "experts: masks move tokens by products, square in a sequence's length, that the model does not need") {
  Architecture masked = sparse;
  masked.experts->capacity_factor = 2;
  const OpTable indexed = layer_ops(masked, false, Dispatcher::alltoall, false, true);
  masked.kernels.expert_routing = ExpertRouting::masked;
  const OpTable table = layer_ops(masked, false, Dispatcher::alltoall, false, true);
  const OpSet moves = ops_named(table, {"permute", "unpermute"});
  CHECK(forward_flops(table, {}, moves) == 4 * q * I * s * s * b * h);
  // A rank moves its own tokens to the places of all experts, and theirs back.
  CHECK(forward_flops(table, shared, moves) == 4 * q * I * s * s * b * h / (c * t));
  CHECK(detail::iteration_flops(table, every_op(table)) ==
        detail::iteration_flops(indexed, every_op(indexed)));
  // Each mask has a row for every token and a column for every place.
  Expr masks;
  for (const Op& op : table.ops()) {
    if (op.name == "masks") masks += table[op.outputs[0]].elements + Expr(table[op.outputs[1]].elements);
  }
  CHECK(masks == 2 * q * I * s * s * b);
  // The second mask holds the probabilities, which no rank sends and no kernel multiplies with.
  for (const Value& value : table.values()) CHECK(value.name != "expert probabilities");
  // Without a capacity to pad to there are no places, and tokens are copied.
  CHECK(ops_named(layer_ops(masked), {"masks"}) == 0);
}

TEST_CASE("experts: one expert for every token is the dense layer, and what routing adds") {
  const auto as_dense = [](const Expr& expr) {
    return expr.substitute(Symbol::experts, 1)
        .substitute(Symbol::experts_per_token, 1)
        .substitute(Symbol::imbalance, 1)
        .substitute(Symbol::expert_feedforward, f);
  };
  const OpTable dense = layer_ops(llama);
  const OpTable one = layer_ops(sparse);
  CHECK(as_dense(parameters(one, {})) == parameters(dense, {}) + h);
  CHECK(as_dense(forward_flops(one, {}, every_op(one))) ==
        forward_flops(dense, {}, every_op(dense)) + 2 * s * b * h);
  // Beside the rows of the router, an expert's input is a copy of the normalized tokens.
  Expr routing;
  for (const StoredTensor& tensor : stored_tensors(one, {})) {
    const std::string_view op = one.ops()[static_cast<std::size_t>(tensor.op)].name;
    const bool of_choice = op == "route" || op == "permute" || op == "sort" || op == "router";
    if (of_choice || tensor.name == "expert probabilities") routing += tensor.bytes;
  }
  CHECK(as_dense(saved(sparse, {})) == saved(llama, {}) + as_dense(routing));
}

TEST_CASE("experts: all-to-all carries the rows, experts that ranks share gather and scatter them") {
  const OpTable table = layer_ops(sparse);
  const Collectives inserted = collectives(table, shared);
  Expr sent;
  Expr gathered;
  for (const Collective& collective : inserted) {
    if (collective.axis == ParallelAxis::expert) sent += collective.bytes;
    if (collective.axis == ParallelAxis::expert_tensor) gathered += collective.bytes;
  }
  // Tokens go and return at 2 bytes, probabilities go at 4; sums over the ranks of an expert are in the router's precision.
  CHECK(sent == (4 * h + 4) * q * I * s * b / (c * t));
  CHECK(gathered == (2 * h + 4 + 4 * h) * q * I * s * b * z / (c * t));
  for (const Collective& collective : collectives(table, unshared)) {
    CHECK(collective.axis == ParallelAxis::tensor);
  }
}

namespace {

// Bytes that pass a rank of experts in the forward pass of a layer, and in its backward pass.
struct Sent {
  Expr forward;
  Expr backward;
};
Sent sent_by(Dispatcher dispatcher, const Sharding& sharding) {
  Sent sent;
  for (const Collective& it : collectives(layer_ops(sparse, false, dispatcher), sharding)) {
    if (it.axis != ParallelAxis::expert && it.axis != ParallelAxis::expert_tensor) continue;
    sent.forward += wire_bytes(forward_kind(it.name), it.bytes, ranks_of(it));
    sent.backward += wire_bytes(backward_kind(it.name), it.backward_bytes, ranks_of(it));
  }
  return sent;
}

}  // namespace

TEST_CASE("dispatchers: an all-gather sends a token to y z - 1 ranks, whichever its experts are") {
  // Tokens at 2 bytes, probabilities at 4 and the map at 1, each of all experts; sums at 4. No q, and no imbalance.
  const Expr others = (y * z - Expr(1)) * s * b / (c * t);
  const Sent gathered = sent_by(Dispatcher::allgather, shared);
  CHECK(gathered.forward == others * (2 * h + 5 * E + 4 * h));
  CHECK(gathered.backward == others * (2 * h + 4 * E + 4 * h));  // the map has no gradient
}

TEST_CASE(
    "dispatchers: of tokens, an all-gather brings y/q times what an all-to-all does, DeepEP and HybridEP r/q "
    "times") {
  constexpr Sharding experts{.tensor = true, .sequence = true, .beside = {{ParallelAxis::expert, y}}};
  const auto tokens = [&](Dispatcher dispatcher) {
    Expr bytes;
    const OpTable table = layer_ops(sparse, false, dispatcher);
    for (const Collective& it : collectives(table, experts)) {
      if (it.axis == ParallelAxis::expert && table.ops()[static_cast<std::size_t>(it.op)].name == "dispatch")
        bytes += wire_bytes(forward_kind(it.name), it.bytes, y);
    }
    // Those with the hidden size are of tokens, the others of probabilities and maps.
    return bytes - bytes.substitute(Symbol::hidden, 0);
  };
  CHECK(q * tokens(Dispatcher::allgather) ==
        (y * tokens(Dispatcher::alltoall)).substitute(Symbol::imbalance, 1));
  for (const Dispatcher once : {Dispatcher::deepep, Dispatcher::hybridep})
    CHECK(q * tokens(once) == r * tokens(Dispatcher::alltoall));
}

TEST_CASE("dispatchers: experts save and compute the same, and weights are the same") {
  const auto by_experts = [](Dispatcher dispatcher) {
    const OpTable table = layer_ops(sparse, false, dispatcher);
    Expr sum;
    for (const StoredTensor& tensor : stored_tensors(table, shared)) {
      const std::string_view op = table.ops()[static_cast<std::size_t>(tensor.op)].name;
      if (op.starts_with("expert_")) sum += tensor.bytes;
    }
    return sum;
  };
  const auto flops = [](Dispatcher dispatcher) {
    const OpTable table = layer_ops(sparse, false, dispatcher);
    return forward_flops(table, shared, every_op(table));
  };
  const auto weights = [](Dispatcher dispatcher) {
    return parameters(layer_ops(sparse, false, dispatcher), shared);
  };
  for (const Dispatcher other : {Dispatcher::allgather, Dispatcher::deepep, Dispatcher::hybridep}) {
    CHECK(by_experts(other) == by_experts(Dispatcher::alltoall));
    CHECK(flops(other) == flops(Dispatcher::alltoall));
    CHECK(weights(other) == weights(Dispatcher::alltoall));
  }
}

TEST_CASE(
    "dispatchers: what a layer saves is the same but for the order of rows, which an all-gather sorts once") {
  constexpr Sharding experts{.tensor = true, .sequence = true, .beside = {{ParallelAxis::expert, y}}};
  const auto kept = [&](Dispatcher dispatcher) {
    return kept_bytes(stored_tensors(layer_ops(sparse, false, dispatcher), experts));
  };
  CHECK(kept(Dispatcher::deepep) == kept(Dispatcher::alltoall));
  CHECK(kept(Dispatcher::alltoall) - kept(Dispatcher::allgather) == 8 * q * I * s * b / t);
}

TEST_CASE("experts: a dispatcher that sends a token once to each rank sends fewer rows") {
  Transformer model = read_model("mixtral-8x7b");
  const Strategy strategy{.data_parallel = 8, .expert_parallel = 4};
  const auto rows = [&](std::int64_t per_token) {
    model.architecture.experts->per_token = per_token;
    return bindings(model, strategy, {.global_batch = 8, .sequence = 4096})[Symbol::expert_ranks_per_token];
  };
  CHECK(rows(1) == doctest::Approx(1));
  // Two of eight experts are on one rank of four in 4 of 28 pairs.
  CHECK(rows(2) == doctest::Approx(2 - 4.0 / 28));
  CHECK(rows(8) == doctest::Approx(4));
}

TEST_CASE("experts: Mixtral 8x7B has 46.7B parameters [arXiv:2401.04088]") {
  const Transformer model = read_model("mixtral-8x7b");
  CHECK(parameter_count(model) == 46'702'792'704);
}

TEST_CASE("experts: what ranks share must divide what they share") {
  const Transformer model = read_model("mixtral-8x7b");
  const Workload workload{.global_batch = 16, .sequence = 4096};
  const auto fields = [&](const Strategy& strategy) {
    std::vector<std::string> where;
    for (const Problem& problem : illegalities(model, strategy, workload, {})) where.push_back(problem.where);
    return where;
  };
  using Fields = std::vector<std::string>;
  CHECK(fields({.data_parallel = 8, .expert_parallel = 8}) == Fields{});
  CHECK(fields({.tensor_parallel = 2, .data_parallel = 4, .expert_parallel = 8, .sequence_parallel = true}) ==
        Fields{});
  CHECK(fields({.data_parallel = 8, .expert_parallel = 3}) ==
        Fields{"expert_parallel", "expert_parallel"});  // neither 8 experts nor 8 devices
  CHECK(fields({.data_parallel = 4, .expert_parallel = 8}) == Fields{"expert_parallel"});
  CHECK(fields({.data_parallel = 8, .expert_parallel = 4, .expert_tensor_parallel = 4}) ==
        Fields{"expert_parallel"});
  CHECK(fields({.tensor_parallel = 2, .data_parallel = 4}) == Fields{"sequence_parallel"});
  const Transformer dense = read_model("llama-3-8b");
  CHECK(illegalities(dense, {.data_parallel = 8, .expert_parallel = 8}, workload, {}).front() ==
        Problem{"expert_parallel", "needs a model with experts"});
  CHECK(illegalities(dense, {.data_parallel = 8, .moe_dispatcher = Dispatcher::allgather}, workload, {})
            .front() == Problem{"moe_dispatcher", "needs a model with experts"});
  CHECK(fields({.data_parallel = 8, .moe_dispatcher = Dispatcher::allgather}) == Fields{});
  CHECK(fields({.data_parallel = 8, .moe_dispatcher = Dispatcher::deepep}) == Fields{"moe_dispatcher"});
  CHECK(fields({.data_parallel = 8, .expert_parallel = 8, .moe_dispatcher = Dispatcher::deepep}) == Fields{});
  Strategy beside{.data_parallel = 8, .expert_parallel = 8, .overlap_expert_all_to_all = true};
  CHECK(fields(beside) == Fields{});
  beside.recompute = {.policy = RecomputePolicy::ops, .ops = {"moe_act"}};
  CHECK(fields(beside) == Fields{});
  beside.recompute.ops = {"moe"};  // which would send tokens again
  CHECK(fields(beside) == Fields{"overlap_expert_all_to_all"});
}

TEST_CASE(
    "experts: rows padded to capacity are sent, brought back and computed on, and nobody waits for counts") {
  const OpTable dropless = layer_ops(sparse);
  const OpTable padded = layer_ops(sparse, false, Dispatcher::alltoall, false, true);
  const auto elements = [](const OpTable& table, std::string_view name) {
    for (const Value& value : table.values()) {
      if (value.name == name) return value.elements;
    }
    return Monomial(0);
  };
  for (const char* const name : {"permuted tokens", "permuted probabilities", "returned tokens"}) {
    CAPTURE(std::string(name));
    CHECK(elements(padded, name) == I * elements(dropless, name));
  }
  for (const char* const name : {"received tokens", "expert input", "expert output", "sum over experts"}) {
    CAPTURE(std::string(name));
    CHECK(elements(padded, name) == elements(dropless, name));
  }
  const auto waits = [](const OpTable& table) {
    return std::any_of(table.ops().begin(), table.ops().end(), [](const Op& op) { return op.host_waits; });
  };
  CHECK(waits(dropless));
  CHECK_FALSE(waits(padded));
}

}  // namespace headroom
