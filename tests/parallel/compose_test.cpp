#include "headroom/parallel/compose.hpp"

#include <doctest/doctest.h>

#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/parameters.hpp"

namespace headroom {
namespace {

// in -> first -> middle -> last, of which `first` and `last` keep what they read and `middle` does not.
constexpr OpTable chain() {
  using namespace symbols;
  OpTable table;
  const ValueId in = table.value({.name = "in", .elements = s});
  const ValueId one = table.value({.name = "one", .elements = s * b});
  const ValueId two = table.value({.name = "two", .elements = s * b * h});
  table.op({.name = "first", .inputs = {in}, .outputs = {one}, .saves = {{in, "for first"}}});
  table.op({.name = "middle", .inputs = {one}, .outputs = {two}});
  table.op({.name = "last", .inputs = {two}, .saves = {{two, "for last"}}});
  return table;
}
constexpr OpSet first = 1, middle = 2, last = 4;

constexpr Expr kept(const OpTable& table, const RecomputedOps& recomputed) {
  return kept_bytes(stored_tensors(table, {}, recomputed));
}
constexpr Expr dropped(const OpTable& table, const RecomputedOps& recomputed) {
  return dropped_bytes(stored_tensors(table, {}, recomputed));
}

// Bytes of one rank's share of a stored tensor of the layer.
constexpr Expr stored(std::string_view name, const Sharding& sharding, const RecomputedOps& recomputed = {}) {
  for (const StoredTensor& it : stored_tensors(layer_ops({}), sharding, recomputed)) {
    if (it.name == name) return it.bytes;
  }
  return -1;
}

}  // namespace

TEST_CASE("compose: a type may have less than a byte an element") {
  using namespace symbols;
  static_assert(whole_bytes({.name = "quantized", .elements = s * b * h, .dtype = Dtype::fp4}, {}) ==
                s * b * h / 2);
}

TEST_CASE("share: without tensor parallelism a rank has everything") {
  for (const auto& [placement, name] : spellings<Placement>) CHECK(share(placement, {}) == Monomial(1));
}

TEST_CASE("share: what tensor and sequence parallelism leave of each placement") {
  using namespace symbols;
  constexpr Sharding tensor{.tensor = true};
  constexpr Sharding sequence{.tensor = true, .sequence = true};
  static_assert(share(Placement::whole, tensor) == 1 && share(Placement::whole, sequence) == 1);
  static_assert(share(Placement::boundary, tensor) == 1 && share(Placement::boundary, sequence) == 1 / t);
  static_assert(share(Placement::split, tensor) == 1 / t && share(Placement::split, sequence) == 1 / t);
  static_assert(share(Placement::kv_split, tensor) == 1 / t && share(Placement::kv_split, sequence) == 1 / t);
}

TEST_CASE("compose: with fewer key/value heads than ranks each rank holds one") {
  using namespace symbols;
  constexpr Sharding replicated{.tensor = true, .kv_replicated = true};
  static_assert(stored("k", replicated) == 2 * s * b * e);
  static_assert(stored("v", replicated) == 2 * s * b * e);
  static_assert(stored("q", replicated) == 2 * s * b * a * e / t);
}

TEST_CASE("compose: replicated key/value heads are computed and held by every rank that shares them") {
  using namespace symbols;
  constexpr Sharding replicated{.tensor = true, .kv_replicated = true};
  const OpTable table = layer_ops({});
  CHECK(forward_flops(table, replicated, ops_named(table, {"qkv"})) ==
        2 * s * b * h * a * e / t + 4 * s * b * h * e);
  CHECK(parameters(table, replicated) - parameters(table, {.tensor = true}) == 2 * e * (h + 1) * (1 - k / t));
}

TEST_CASE("compose: nothing is recomputed, everything saved is kept") {
  using namespace symbols;
  static_assert(kept(chain(), {}) == 2 * s + 2 * s * b * h);
  static_assert(dropped(chain(), {}) == 0);
}

TEST_CASE("compose: a region keeps what it makes for ops outside, and what it reads") {
  using namespace symbols;
  // `last` keeps two, so recomputing `middle` saves nothing and costs its input.
  static_assert(kept(chain(), {.ops = middle}) == 2 * s + 2 * s * b + 2 * s * b * h);
  static_assert(dropped(chain(), {.ops = middle}) == 0);
}

TEST_CASE("compose: discarded outputs are dropped whoever keeps them") {
  using namespace symbols;
  static_assert(kept(chain(), {.ops = middle, .discarded = middle}) == 2 * s + 2 * s * b);
  static_assert(dropped(chain(), {.ops = middle, .discarded = middle}) == 2 * s * b * h);
}

TEST_CASE("compose: a region drops what it makes and only it keeps") {
  using namespace symbols;
  static_assert(kept(chain(), {.ops = middle | last}) == 2 * s + 2 * s * b);
  static_assert(dropped(chain(), {.ops = middle | last}) == 2 * s * b * h);
}

TEST_CASE("compose: recomputing everything keeps the input") {
  using namespace symbols;
  static_assert(kept(chain(), {.ops = first | middle | last}) == 2 * s);
  static_assert(dropped(chain(), {.ops = first | middle | last}) == 2 * s * b * h);
}

TEST_CASE("compose: a stored tensor says which op keeps it first, and what for") {
  const StoredTensors tensors = stored_tensors(chain(), {}, {.ops = middle});
  REQUIRE(tensors.size() == 3);
  CHECK(tensors[0].name == "in");
  CHECK(tensors[0].op == 0);
  CHECK(tensors[0].why == "for first");
  CHECK(tensors[1].name == "one");
  CHECK(tensors[1].op == 1);
  CHECK(tensors[1].why == "the recomputation starts from it");
  CHECK(tensors[2].name == "two");
  CHECK(tensors[2].op == 2);
}

TEST_CASE(
    "compose: kept and dropped bytes add up to what is kept without a recomputation, when the recomputation "
    "reads nothing "
    "new") {
  const OpTable table = layer_ops({});
  for (const OpSet recomputed : {core_attention_ops(table), every_op(table)}) {
    CHECK(kept(table, {.ops = recomputed}) + dropped(table, {.ops = recomputed}) == kept(table, {}));
  }
}

TEST_CASE("compose: discarding the activation's output keeps its input and drops mlp_down's") {
  using namespace symbols;
  const OpTable table = layer_ops({});
  const OpSet ops = ops_named(table, {"activation"});
  const RecomputedOps recomputed{.ops = ops, .discarded = ops};
  CHECK(dropped(table, recomputed) == 2 * s * b * f);
  CHECK(kept(table, {}) - kept(table, recomputed) == 2 * s * b * f);
}

TEST_CASE("compose: discarding the outputs of both norms keeps their inputs, which they keep anyway") {
  using namespace symbols;
  const OpTable table = layer_ops({});
  const OpSet ops = ops_named(table, {"norm_1", "norm_2"});
  const RecomputedOps recomputed{.ops = ops, .discarded = ops};
  CHECK(dropped(table, recomputed) == 4 * s * b * h);
}

TEST_CASE("compose: a sharded checkpoint is split over the ranks, whatever else is not") {
  using namespace symbols;
  const OpTable table = layer_ops({});
  constexpr Sharding tensor{.tensor = true};
  CHECK(kept_bytes(stored_tensors(table, tensor, {.ops = every_op(table)})) == 2 * s * b * h);
  CHECK(kept_bytes(stored_tensors(table, tensor, {.ops = every_op(table), .shard_checkpoint = true})) ==
        2 * s * b * h / t);
}

TEST_CASE("compose: without gathering again the inputs of column-parallel linears are kept whole") {
  using namespace symbols;
  constexpr Sharding whole{.tensor = true, .sequence = true, .save_gathered_input = true};
  constexpr Sharding shards{.tensor = true, .sequence = true};
  static_assert(stored("normalized", whole) == 2 * s * b * h);
  static_assert(stored("normalized", shards) == 2 * s * b * h / t);
  static_assert(stored("layer input", whole) == 2 * s * b * h / t);
  // A recomputation makes it whole again; a recomputation that starts from it starts from the shard.
  const OpTable table = layer_ops({});
  CHECK(stored("normalized", whole, {.ops = every_op(table)}) == 2 * s * b * h);
  CHECK(stored("normalized", whole, {.ops = ops_named(table, {"qkv"})}) == 2 * s * b * h / t);
}

TEST_CASE("compose: a recomputation keeps the random state at exact detail only") {
  const OpTable table = layer_ops({});
  const StoredTensors tensors = stored_tensors(table, {}, {.ops = every_op(table)}, Detail::exact);
  CHECK(tensors[tensors.size() - 1].name == "random state");
  CHECK(tensors[tensors.size() - 1].bytes == Monomial(checkpoint_random_state_bytes));
  for (const StoredTensor& it : stored_tensors(table, {}, {.ops = every_op(table)}))
    CHECK(it.name != "random state");
}

TEST_CASE("compose: a kept view pins its whole buffer at exact detail") {
  using namespace symbols;
  OpTable table;
  const ValueId kept_view = table.value({.name = "kept view", .elements = s, .buffer = 0});
  const ValueId other_view = table.value({.name = "other view", .elements = b, .buffer = 0});
  const ValueId elsewhere = table.value({.name = "elsewhere", .elements = h, .buffer = 1});
  table.op({.name = "make", .outputs = {kept_view, other_view, elsewhere}});
  table.op({.name = "read", .inputs = {kept_view}, .saves = {{kept_view, "for read"}}});
  CHECK(kept_bytes(stored_tensors(table, {})) == 2 * s);
  CHECK(kept_bytes(stored_tensors(table, {}, {}, Detail::exact)) == 2 * s + 2 * b);
}

}  // namespace headroom
