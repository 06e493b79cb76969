// Weights of a rank as matrices, for optimizers that treat matrices differently: their shapes, and which of
// them a rank steps if ranks with the same matrices divide them whole.
#pragma once

#include <vector>

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Equal matrices: parts of one GEMM's weights, on one rank.
struct WeightMatrices {
  double rows = 0;
  double columns = 0;
  double count = 0;
  WeightClass weights = WeightClass::dense;
  bool of_vocabulary = false;  // embeddings (of tokens or positions) and the output layer
  friend bool operator==(const WeightMatrices&, const WeightMatrices&) = default;
};
using MatrixList = std::vector<WeightMatrices>;

// Returns the number of parameters in the matrices.
double parameters_in(const MatrixList& matrices);

// Symbolic matrices of one layer of a kind, or of an end of the model. If a linear has several outputs side
// by side, each is a matrix of its own (q, k and v) [Megatron-LM, --muon-split-qkv, its default]. Each expert
// has its own matrix. Tensor-parallel ranks step what they hold [--muon-tp-mode blockwise, its default].
struct MatrixExpr {
  Monomial rows;
  Monomial columns;
  Monomial count;
  WeightClass weights = WeightClass::dense;
  bool of_vocabulary = false;
};
std::vector<MatrixExpr> matrix_exprs(const OpTable& table, const Sharding& sharding);
MatrixList evaluate(const std::vector<MatrixExpr>& exprs, const Bindings& letters);

// Returns the matrices of a pipeline rank. `counts` has the layers of each kind on its virtual stages; the
// last kind is the output layer's. `tied`: if the rank holds `both_ends`, the output layer shares the
// embedding's weights.
MatrixList matrices_of_rank(const std::vector<MatrixList>& of_kinds, const KindCounts& counts, bool tied,
                            bool both_ends);

// Return the matrices of a class, and those that Muon steps: all but embeddings and the output layer.
MatrixList of_class(const MatrixList& matrices, WeightClass weights);
MatrixList hidden_matrices(const MatrixList& matrices);

// Returns the matrices that the busiest of `ranks` ranks steps. Expects matrices of one class. Equal matrices
// are dealt out in whole rounds. The rest go, largest first, to the ranks that have least [Megatron-LM,
// core/optimizer/layer_wise_optimizer.py, which packs buckets this way].
MatrixList fullest_share(MatrixList matrices, std::int64_t ranks);

}  // namespace headroom
