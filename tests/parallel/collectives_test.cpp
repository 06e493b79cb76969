#include "headroom/parallel/collectives.hpp"

#include <doctest/doctest.h>

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

constexpr Sharding tensor{.tensor = true};
constexpr Sharding sequence{.tensor = true, .sequence = true};

}  // namespace

TEST_CASE("collectives: none without tensor parallelism") {
  static_assert(collectives(layer_ops({}), {}).empty());
}

TEST_CASE("collectives: a ring moves an all-reduce past every rank twice") {
  using namespace symbols;
  static_assert(wire_bytes(CollectiveKind::none, s) == 0);
  static_assert(wire_bytes(CollectiveKind::all_gather, s) == s - s / t);
  static_assert(wire_bytes(CollectiveKind::reduce_scatter, s) == s - s / t);
  static_assert(wire_bytes(CollectiveKind::all_reduce, s) == 2 * (s - s / t));
}

TEST_CASE("collectives: a ring of one moves nothing") {
  using namespace symbols;
  for (const auto& [kind, name] : spellings<CollectiveKind>) {
    // A send goes to a neighbour, or is not asked for.
    if (kind == CollectiveKind::send_receive || kind == CollectiveKind::pipeline_send) continue;
    CHECK(wire_bytes(kind, s).substitute(Symbol::tensor_parallel, 1) == 0);
  }
}

TEST_CASE("collectives: in the order of the forward pass, before and after the ops they serve") {
  const OpTable table = layer_ops({});
  const Collectives inserted = collectives(table, sequence);
  REQUIRE(inserted.size() == 4);
  const auto op_of = [&](std::size_t i) {
    return table.ops()[static_cast<std::size_t>(inserted[i].op)].name;
  };
  CHECK(op_of(0) == "qkv");
  CHECK(op_of(1) == "projection");
  CHECK(op_of(2) == "mlp_up");
  CHECK(op_of(3) == "mlp_down");
  CHECK(enters(inserted[0].name));
  CHECK_FALSE(enters(inserted[1].name));
}

TEST_CASE("collectives: the architecture does not change how many there are") {
  constexpr Architecture llama{.activation = Activation::swiglu,
                               .normalization = Normalization::rms_norm,
                               .positions = Positions::rotary,
                               .kernels = {.attention = AttentionKernel::flash}};
  static_assert(collectives(layer_ops(llama), tensor).size() == 4);
}

TEST_CASE("collectives: the embedding sums over ranks or scatters, the head gathers its input") {
  using namespace symbols;
  const Collectives embedding = collectives(embedding_ops({}), sequence);
  REQUIRE(embedding.size() == 1);
  CHECK(
      embedding[0] ==
      Collective{.name = Conjugate::g_bar, .op = 0, .bytes = 2 * s * b * h, .backward_bytes = 2 * s * b * h});
  CHECK(collectives(embedding_ops({}), tensor)[0].name == Conjugate::f_bar);

  const Collectives head = collectives(head_ops({}), sequence);
  REQUIRE(head.size() == 1);
  CHECK(head[0] == Collective{.name = Conjugate::g,
                              .op = 1,
                              .bytes = 2 * s * b * h,
                              .backward_bytes = 2 * s * b * h,
                              .regathers = true});
  CHECK(collectives(head_ops({}), tensor)[0].name == Conjugate::f);
}

TEST_CASE(
    "collectives: a whole embedding goes on in shards, and logits are gathered for a loss without parts") {
  using namespace symbols;
  constexpr VocabularyParallel gathered{EmbeddingParallel::none, LossParallel::gathered};
  const Collectives embedding = collectives(embedding_ops({}, gathered), sequence);
  REQUIRE(embedding.size() == 1);
  CHECK(embedding[0] ==
        Collective{
            .name = Conjugate::scatter, .op = 0, .bytes = 2 * s * b * h, .backward_bytes = 2 * s * b * h});
  CHECK(collectives(embedding_ops({}, gathered), tensor).empty());

  for (const CrossEntropy kind : {CrossEntropy::plain, CrossEntropy::chunked}) {
    const OpTable table = head_ops(Architecture{.kernels = {.cross_entropy = kind}}, gathered);
    const Collectives head = collectives(table, sequence);
    REQUIRE(head.size() == 2);
    CHECK(head[0].name == Conjugate::g);
    CHECK(head[1] ==
          Collective{
              .name = Conjugate::gather, .op = 2, .bytes = 2 * s * b * v, .backward_bytes = 2 * s * b * v});
  }
  CHECK(collectives(head_ops({}, {EmbeddingParallel::none, LossParallel::none}), tensor).empty());
}

TEST_CASE("collectives: those of recomputed ops run again") {
  const OpTable table = layer_ops({});
  for (const Collective& it : collectives(table, tensor, {.ops = op_bit(1)}))
    CHECK(it.recomputed == (it.op == 1));
}

}  // namespace headroom
