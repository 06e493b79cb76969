// The weights of a rank as matrices, for optimizers that step these as such: how many rows and columns they have, and which of
// them a rank steps where ranks that hold the same divide them whole.
#pragma once

#include <vector>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Alike: parts of one product's weights, of one rank.
struct WeightMatrices {
  double rows = 0;
  double columns = 0;
  double count = 0;
  WeightClass weights = WeightClass::dense;
  bool of_vocabulary = false;  // or of positions: embeddings and the output layer
  friend bool operator==(const WeightMatrices&, const WeightMatrices&) = default;
};
using MatrixList = std::vector<WeightMatrices>;

// Parameters that are in them.
double parameters_in(const MatrixList& matrices);

// The same of one layer of a kind, or of an end of the model, in symbols. Of a linear whose outputs lie side by side, each is a
// matrix of its own (q beside k and v) [Megatron-LM, --muon-split-qkv, its default], and each expert has its own. Tensor-parallel
// ranks step what they hold [--muon-tp-mode blockwise, its default].
struct MatrixExpr {
  Monomial rows;
  Monomial columns;
  Monomial count;
  WeightClass weights = WeightClass::dense;
  bool of_vocabulary = false;
};
std::vector<MatrixExpr> matrix_exprs(const OpTable& table, const Sharding& sharding);
MatrixList evaluate(const std::vector<MatrixExpr>& exprs, const Bindings& letters);

// Of a pipeline rank whose virtual stages hold so many of each kind, the last of which is the head. `tied`: the output layer's
// weights are the embedding's where `both_ends` stand on the rank.
MatrixList matrices_of_rank(const std::vector<MatrixList>& of_kinds, const KindCounts& counts, bool tied,
                            bool both_ends);

// Those of a class, and of them those that Muon steps: all but embeddings and the output layer.
MatrixList of_class(const MatrixList& matrices, WeightClass weights);
MatrixList hidden_matrices(const MatrixList& matrices);

// Those that the fullest of so many ranks steps, which divide matrices of one class: whole rounds of equal matrices, and what is
// left of each, the largest first, to the ranks that have least [Megatron-LM, core/optimizer/layer_wise_optimizer.py, where
// buckets are packed so].
MatrixList fullest_share(MatrixList matrices, std::int64_t ranks);

}  // namespace headroom
