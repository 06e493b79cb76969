// K22 section 4.2, figures 4 to 6 and eq. 3: where tensor and sequence parallelism communicate, and how
// much.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "headroom/parallel/collectives.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

using k22::tensor;
using k22::tensor_sequence;

// The ops and collectives of the layer in the order of the forward pass.
std::vector<std::string> dataflow(const Sharding& sharding) {
  const OpTable table = layer_ops({});
  const Collectives inserted = collectives(table, sharding);
  std::vector<std::string> flow;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const auto append = [&](bool before) {
      for (const Collective& it : inserted) {
        if (it.op == static_cast<int>(i) && enters(it.name) == before) flow.emplace_back(name_of(it.name));
      }
    };
    append(true);
    flow.emplace_back(table.ops()[i].name);
    append(false);
  }
  return flow;
}

struct Count {
  int all_reduces = 0, all_gathers = 0, reduce_scatters = 0;
  friend bool operator==(const Count&, const Count&) = default;
};

constexpr Count count(const Sharding& sharding) {
  Count result;
  const auto add = [&](CollectiveKind kind) {
    if (kind == CollectiveKind::all_reduce) ++result.all_reduces;
    if (kind == CollectiveKind::all_gather) ++result.all_gathers;
    if (kind == CollectiveKind::reduce_scatter) ++result.reduce_scatters;
  };
  for (const Collective& it : collectives(layer_ops({}), sharding)) {
    add(forward_kind(it.name));
    add(backward_kind(it.name));
  }
  return result;
}

constexpr Expr bytes_on_the_wire(const Sharding& sharding) {
  Expr sum;
  for (const Collective& it : collectives(layer_ops({}), sharding)) {
    sum += wire_bytes(forward_kind(it.name), it.bytes) + wire_bytes(backward_kind(it.name), it.bytes);
  }
  return sum;
}

}  // namespace

TEST_CASE("K22 eq. 3: the MLP under tensor and sequence parallelism") {
  const std::vector<std::string> flow = dataflow(tensor_sequence);
  CHECK(std::vector(flow.end() - 7, flow.end()) ==
        std::vector<std::string>{"norm_2", "g", "mlp_up", "activation", "mlp_down", "g_bar", "residual_2"});
}

TEST_CASE("K22 eq. 3: the attention block is the same shape") {
  const std::vector<std::string> flow = dataflow(tensor_sequence);
  CHECK(std::vector(flow.begin(), flow.end() - 7) ==
        std::vector<std::string>{"norm_1", "g", "qkv", "scores", "softmax", "softmax_dropout", "context",
                                 "projection", "g_bar", "residual_1"});
}

TEST_CASE("K22 figure 4: f and f_bar stand where g and g_bar stand") {
  std::vector<std::string> flow = dataflow(tensor_sequence);
  for (std::string& step : flow) {
    if (step == "g") step = "f";
    if (step == "g_bar") step = "f_bar";
  }
  CHECK(dataflow(tensor) == flow);
}

TEST_CASE("K22 eq. 3: norms, dropouts and residuals are on sequence shards, the rest on 1/t") {
  const OpTable table = layer_ops({});
  for (const Op& op : table.ops()) {
    const bool norm = op.kind == OpKind::normalization;
    const bool residual = op.name.starts_with("residual");
    CHECK((op.region == Placement::boundary) == (norm || residual));
  }
}

TEST_CASE("K22 section 4.2.1: f and f_bar are conjugate") {
  static_assert(forward_kind(Conjugate::f) == CollectiveKind::none);
  static_assert(backward_kind(Conjugate::f) == CollectiveKind::all_reduce);
  static_assert(forward_kind(Conjugate::f_bar) == backward_kind(Conjugate::f));
  static_assert(backward_kind(Conjugate::f_bar) == forward_kind(Conjugate::f));
}

TEST_CASE("K22 section 4.2.2: g and g_bar are conjugate") {
  static_assert(forward_kind(Conjugate::g) == CollectiveKind::all_gather);
  static_assert(backward_kind(Conjugate::g) == CollectiveKind::reduce_scatter);
  static_assert(forward_kind(Conjugate::g_bar) == backward_kind(Conjugate::g));
  static_assert(backward_kind(Conjugate::g_bar) == forward_kind(Conjugate::g));
}

TEST_CASE("K22 section 4.2: every collective of the layer moves a whole activation of 2sbh bytes") {
  using namespace symbols;
  for (const Sharding& sharding : {tensor, tensor_sequence}) {
    for (const Collective& it : collectives(layer_ops({}), sharding)) CHECK(it.bytes == 2 * s * b * h);
  }
}

TEST_CASE("K22 section 4.2: four all-reduces, or four all-gathers and four reduce-scatters") {
  static_assert(count(k22::alone) == Count{});
  static_assert(count(tensor) == Count{.all_reduces = 4});
  static_assert(count(tensor_sequence) == Count{.all_gathers = 4, .reduce_scatters = 4});
}

TEST_CASE("K22 section 4.2.2: sequence parallelism moves the same bytes") {
  using namespace symbols;
  static_assert(bytes_on_the_wire(tensor) == bytes_on_the_wire(tensor_sequence));
  static_assert(bytes_on_the_wire(tensor) == 16 * s * b * h * (1 - 1 / t));
}

TEST_CASE("K22 section 4.2.2: Y is gathered again in the backward, once for each block") {
  int regathers = 0;
  for (const Collective& it : collectives(layer_ops({}), tensor_sequence)) {
    if (!it.regathers) continue;
    CHECK(it.name == Conjugate::g);
    ++regathers;
  }
  CHECK(regathers == 2);
  for (const Collective& it : collectives(layer_ops({}), tensor)) CHECK_FALSE(it.regathers);
}

TEST_CASE("K22 section 4.2.2: keeping Y whole instead costs 2sbh(1 - 1/t) for each block") {
  using namespace symbols;
  constexpr Sharding keeps_whole{.tensor = true, .sequence = true, .save_gathered_input = true};
  static_assert(k22::layer_bytes(keeps_whole) - k22::layer_bytes(tensor_sequence) ==
                2 * (2 * s * b * h * (1 - 1 / t)));
  for (const Collective& it : collectives(layer_ops({}), keeps_whole)) CHECK_FALSE(it.regathers);
}

TEST_CASE("K22 section 5: selective recomputation recomputes no collective, full recomputation all of them") {
  for (const Collective& it : collectives(layer_ops({}), tensor_sequence, k22::selective()))
    CHECK_FALSE(it.recomputed);
  for (const Collective& it : collectives(layer_ops({}), tensor_sequence, k22::full())) CHECK(it.recomputed);
}

}  // namespace headroom
