// Weights as matrices: which there are, and which of them a rank steps where ranks divide them whole.
#include "headroom/memory/matrices.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/memory/state.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "model/architectures.hpp"

namespace headroom {
namespace {

MatrixList alike(double rows, double columns, double count) {
  return {{.rows = rows, .columns = columns, .count = count}};
}

Transformer small(bool tied) {
  Transformer model{.hidden = 64,
                    .feedforward = 256,
                    .heads = 4,
                    .key_value_heads = 4,
                    .head_size = 16,
                    .layers = 6,
                    .vocabulary = 1024,
                    .vocabulary_multiple = 1,
                    .sequence = 128,
                    .max_positions = 128};
  model.architecture.tied_embeddings = tied;
  return model;
}

// Of the only pipeline rank.
struct HeldWeights {
  Parameters parameters;
  MatrixList matrices;
};
HeldWeights held_by(const Transformer& model, Strategy strategy) {
  strategy.optimizer.kind = OptimizerKind::muon;
  const Workload workload{.global_batch = 8, .sequence = model.sequence};
  const ModelParameters parts = model_parameters(model, strategy, workload);
  const KindCounts counts = counts_of(layers_of(model, strategy));
  return {parameters_of_rank(parts, counts, true), matrices_of_rank(parts, counts, true)};
}

}  // namespace

TEST_CASE("matrices: the fullest rank has whole rounds of equal ones, and of the rest the largest") {
  CHECK(fullest_share(alike(4, 8, 12), 4) == alike(4, 8, 3));
  CHECK(fullest_share(alike(4, 8, 13), 4) == alike(4, 8, 4));
  CHECK(fullest_share(alike(4, 8, 3), 8) == alike(4, 8, 1));
  // Two large ones on two of three ranks: the four small ones go to the third and to one of the others.
  const MatrixList mixed{{.rows = 1, .columns = 10, .count = 4}, {.rows = 4, .columns = 10, .count = 2}};
  CHECK(parameters_in(fullest_share(mixed, 3)) == 50);
  CHECK(fullest_share({}, 8).empty());
}

TEST_CASE("matrices: shares hold no less than the mean, no more than a matrix of each size beyond it") {
  rc::check([] {
    MatrixList list;
    double largest = 0;
    for (int i = 0; i < *rc::gen::inRange(1, 6); ++i) {
      list.push_back({.rows = static_cast<double>(*rc::gen::inRange(1, 50)),
                      .columns = static_cast<double>(*rc::gen::inRange(1, 50)),
                      .count = static_cast<double>(*rc::gen::inRange(1, 40))});
      largest += list.back().rows * list.back().columns;
    }
    const auto ranks = static_cast<std::int64_t>(*rc::gen::inRange(1, 20));
    const double mean = parameters_in(list) / static_cast<double>(ranks);
    const double fullest = parameters_in(fullest_share(list, ranks));
    RC_ASSERT(fullest >= mean * (1 - 1e-12));
    RC_ASSERT(fullest <= mean + largest);
    if (ranks == 1) RC_ASSERT(fullest == parameters_in(list));
  });
}

TEST_CASE("matrices: all weights of products and embeddings, and nothing else, are in them") {
  for (const bool tied : {true, false}) {
    for (const std::int64_t t : {1, 2}) {
      CAPTURE(tied);
      CAPTURE(t);
      const auto ranks = static_cast<double>(t);
      const Transformer model = small(tied);
      const HeldWeights held = held_by(model, {.tensor_parallel = t});
      // Norms and biases: of a layer two norms of 2 h, and biases of 3h/t, h, 4h/t and h; of the end a norm.
      const double vectors = 6 * (4 * 64 + 64.0 * (3.0 / ranks + 1 + 4.0 / ranks + 1)) + 2 * 64;
      CHECK(parameters_in(held.matrices) == total(held.parameters) - vectors);
      const double ends = (tied ? 1 : 2) * 1024 * 64.0 / ranks + 128 * 64;
      CHECK(parameters_in(hidden_matrices(held.matrices)) == parameters_in(held.matrices) - ends);
    }
  }
}

TEST_CASE("matrices: of all that a rank with a copy of the embedding holds, norms alone are in none") {
  Transformer model = small(false);
  model.mtp_layers = 1;
  Strategy strategy{.pipeline_parallel = 2};
  strategy.optimizer.kind = OptimizerKind::adafactor;
  const ModelParameters parts =
      model_parameters(model, strategy, {.global_batch = 8, .sequence = model.sequence});
  const ModelLayers layers = layers_of(model, strategy);
  KindCounts last = counts_of(layers);
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    if (layers.kinds[i].position == KindPosition::first) last[i] = 0;
  }
  const double in_none =
      total(parameters_of_rank(parts, last, false)) - parameters_in(matrices_of_rank(parts, last, false));
  CHECK(parts.copied == 1024 * 64);
  CHECK(in_none > 0);
  CHECK(in_none < parts.copied / 2);  // biases and norms
}

TEST_CASE("matrices: each optimizer's state") {
  const Transformer model = small(true);
  const HeldWeights held = held_by(model, {});
  const double all = total(held.parameters);
  const auto state = [&](OptimizerKind kind, Strategy strategy = {}) {
    strategy.optimizer.kind = kind;
    return model_state(model, strategy, Workload{}, held.parameters, 2, {}, held.matrices).optimizer.count();
  };
  CHECK(state(OptimizerKind::adam) == 12 * all);
  CHECK(state(OptimizerKind::sgd) == 8 * all);
  const double hidden = parameters_in(hidden_matrices(held.matrices));
  CHECK(hidden == 6 * 12.0 * 64 * 64);
  CHECK(state(OptimizerKind::muon) == 8 * hidden + 12 * (all - hidden));
  // q apart from k and v; the projection; up and down; the word and the position embedding.
  const double sides = 6 * (64 + 64 + 64 + 128 + 64 + 64 + 64 + 256 + 256 + 64) + (1024 + 64) + (128 + 64);
  CHECK(state(OptimizerKind::adafactor) == 4 * all + 4 * sides + 4 * (all - parameters_in(held.matrices)));
  // Of 6 matrices of a size, four ranks have up to 2; in all 24, as many parameters as 72 of h x h.
  const Strategy four{.data_parallel = 4, .data_sharding = DataSharding::zero1};
  const MatrixList share = fullest_share(hidden_matrices(held.matrices), 4);
  CHECK(parameters_in(share) >= hidden / 4);
  CHECK(state(OptimizerKind::muon, four) == 8 * parameters_in(share) + 12 * (all - hidden) / 4);
}

}  // namespace headroom
