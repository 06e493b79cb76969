// K22 sections 4.1 and 4.2 and table 2: what one layer stores. Equal polynomials, compared by the compiler.
#include <doctest/doctest.h>

#include "papers/k22.hpp"

namespace headroom {
namespace {

using k22::alone;
using k22::layer_bytes;
using k22::selective;
using k22::tensor;
using k22::tensor_sequence;

// What the ops from `first` to `last` of the undivided layer store between them.
constexpr Expr stored_by(std::string_view first, std::string_view last) {
  const OpTable table = layer_ops({});
  const auto place = [&](std::string_view name) {
    for (std::size_t i = 0; i < table.ops().size(); ++i) {
      if (table.ops()[i].name == name) return static_cast<int>(i);
    }
    return nowhere;
  };
  Expr sum;
  for (const StoredTensor& stored : stored_tensors(table, alone)) {
    if (stored.op >= place(first) && stored.op <= place(last)) sum += stored.bytes;
  }
  return k22::in_its_letters(sum);
}
constexpr Expr stored_by(std::string_view op) { return stored_by(op, op); }

}  // namespace

TEST_CASE("K22 section 4.1: every row of the layer") {
  using namespace symbols;
  static_assert(stored_by("norm_1") == 2 * s * b * h);
  static_assert(stored_by("qkv") == 2 * s * b * h);
  static_assert(stored_by("scores") == 4 * s * b * h);
  static_assert(stored_by("softmax") == 2 * a * s * s * b);
  static_assert(stored_by("softmax_dropout") == a * s * s * b);
  static_assert(stored_by("context") == 2 * a * s * s * b + 2 * s * b * h);
  static_assert(stored_by("projection") == 2 * s * b * h);
  static_assert(stored_by("residual_1") == s * b * h);
  static_assert(stored_by("norm_2") == 2 * s * b * h);
  static_assert(stored_by("mlp_up") == 2 * s * b * h);
  static_assert(stored_by("activation") == 8 * s * b * h);
  static_assert(stored_by("mlp_down") == 8 * s * b * h);
  static_assert(stored_by("residual_2") == s * b * h);
}

TEST_CASE("K22 section 4.1: attention, MLP and layer norms") {
  using namespace symbols;
  static_assert(stored_by("qkv", "residual_1") == 11 * s * b * h + 5 * a * s * s * b);
  static_assert(stored_by("mlp_up", "residual_2") == 19 * s * b * h);
  static_assert(stored_by("norm_1") + stored_by("norm_2") == 4 * s * b * h);
}

TEST_CASE("K22 eq. 1: one layer without parallelism") {
  using namespace symbols;
  static_assert(layer_bytes(alone) == s * b * h * (34 + 5 * a * s / h));
  CHECK(to_string(layer_bytes(alone)) == "s b h (34 + 5 a s/h)");
}

TEST_CASE("K22 eq. 2: one layer under tensor parallelism") {
  using namespace symbols;
  static_assert(layer_bytes(tensor) == s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
  CHECK(to_string(layer_bytes(tensor)) == "s b h (10 + 24/t + 5 a s/(h t))");
}

TEST_CASE("K22 eq. 4: one layer under tensor and sequence parallelism") {
  using namespace symbols;
  static_assert(layer_bytes(tensor_sequence) == s * b * h / t * (34 + 5 * a * s / h));
  CHECK(to_string(layer_bytes(tensor_sequence)) == "s b h/t (34 + 5 a s/h)");
}

TEST_CASE("K22 eqs. 1, 2 and 4: one rank of one is the undivided layer") {
  static_assert(layer_bytes(tensor).substitute(Symbol::tensor_parallel, 1) == layer_bytes(alone));
  static_assert(layer_bytes(tensor_sequence).substitute(Symbol::tensor_parallel, 1) == layer_bytes(alone));
}

TEST_CASE("K22 section 4.2: ten sbh are boundary tensors, which tensor parallelism alone does not divide") {
  using namespace symbols;
  const OpTable table = layer_ops({});
  Expr boundary;
  for (const StoredTensor& stored : stored_tensors(table, alone)) {
    if (table[stored.value].placement == Placement::boundary) boundary += stored.bytes;
  }
  CHECK(boundary == 10 * s * b * h);
}

TEST_CASE("K22 table 2: no parallelism") {
  using namespace symbols;
  static_assert(layer_bytes(alone) == s * b * h * (34 + 5 * a * s / h));
}

TEST_CASE("K22 table 2: tensor parallel") {
  using namespace symbols;
  static_assert(layer_bytes(tensor) == s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
}

TEST_CASE("K22 table 2: tensor and sequence parallel") {
  using namespace symbols;
  static_assert(layer_bytes(tensor_sequence) == s * b * h * (34 / t + 5 * a * s / (h * t)));
}

TEST_CASE("K22 table 2: tensor parallel with selective recomputation") {
  using namespace symbols;
  static_assert(layer_bytes(tensor, selective()) == s * b * h * (10 + 24 / t));
}

TEST_CASE("K22 table 2: tensor and sequence parallel with selective recomputation") {
  using namespace symbols;
  static_assert(layer_bytes(tensor_sequence, selective()) == s * b * h * 34 / t);
}

TEST_CASE("K22 table 2: full recomputation") {
  using namespace symbols;
  static_assert(layer_bytes(alone, k22::full()) == 2 * s * b * h);
  static_assert(layer_bytes(tensor, k22::full()) == 2 * s * b * h);
}

TEST_CASE("K22 section 5: a full checkpoint may be sharded over the tensor-parallel ranks") {
  using namespace symbols;
  static_assert(layer_bytes(tensor, {.ops = k22::full().ops, .shard_checkpoint = true}) == 2 * s * b * h / t);
}

TEST_CASE("K22 section 5: selective recomputation drops 5as/h and keeps Q, K and V") {
  using namespace symbols;
  static_assert(layer_bytes(alone) - layer_bytes(alone, selective()) == 5 * a * s * s * b);
  static_assert(k22::in_its_letters(dropped_bytes(stored_tensors(layer_ops({}), alone, selective()))) ==
                5 * a * s * s * b);
}

}  // namespace headroom
