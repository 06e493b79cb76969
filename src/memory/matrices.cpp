#include "headroom/memory/matrices.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "headroom/core/counts.hpp"

namespace headroom {
namespace {

double size_of_one(const WeightMatrices& matrices) { return matrices.rows * matrices.columns; }

// Ranks with equal loads of the same matrices.
struct AlikeRanks {
  double load = 0;
  double ranks = 0;
  std::vector<std::size_t> extra;  // matrices they have one more of, beyond whole rounds
};

bool is_embedding(const Amount& weights) {
  return weights.count.power(Symbol::vocabulary) > 0 || weights.count.power(Symbol::max_positions) > 0;
}

}  // namespace

MatrixList fullest_share(MatrixList matrices, std::int64_t ranks) {
  std::stable_sort(matrices.begin(), matrices.end(),
                   [](const auto& x, const auto& y) { return size_of_one(x) > size_of_one(y); });
  std::vector<AlikeRanks> alike{{0, real(ranks), {}}};
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    double left = std::fmod(matrices[i].count, real(ranks));
    matrices[i].count = std::floor(matrices[i].count / real(ranks));
    std::stable_sort(alike.begin(), alike.end(),
                     [](const AlikeRanks& x, const AlikeRanks& y) { return x.load < y.load; });
    std::vector<AlikeRanks> next;
    for (AlikeRanks& group : alike) {
      const double taking = std::min(left, group.ranks);
      left -= taking;
      if (taking > 0) {
        AlikeRanks& fuller = next.emplace_back(group);
        fuller.load += size_of_one(matrices[i]);
        fuller.ranks = taking;
        fuller.extra.push_back(i);
      }
      group.ranks -= taking;
      if (group.ranks > 0) next.push_back(std::move(group));
    }
    alike = std::move(next);
  }
  const auto fullest = std::max_element(alike.begin(), alike.end(),
                                        [](const auto& x, const auto& y) { return x.load < y.load; });
  for (const std::size_t i : fullest->extra) matrices[i].count += 1;
  std::erase_if(matrices, [](const WeightMatrices& it) { return it.count == 0; });
  return matrices;
}

double parameters_in(const MatrixList& matrices) {
  double sum = 0;
  for (const WeightMatrices& alike : matrices) sum += alike.count * size_of_one(alike);
  return sum;
}

std::vector<MatrixExpr> matrix_exprs(const OpTable& table, const Sharding& sharding) {
  std::vector<MatrixExpr> exprs;
  for (const Op& op : table.ops()) {
    if (op.frozen) continue;
    for (const Amount& part : op.parameters) {
      if (!is_embedding(part)) continue;
      exprs.push_back({.rows = on_rank(part, sharding) / symbols::h,
                       .columns = symbols::h,
                       .count = 1,
                       .of_vocabulary = true});
    }
    if (op.kind != OpKind::linear || op.shares_weights) continue;
    for (const MatrixProduct& product : op.products) {
      for (const Amount& outer : product.outer) {
        exprs.push_back({.rows = on_rank(product.inner, sharding),
                         .columns = on_rank(outer, sharding),
                         .count = on_rank(product.batch, sharding),
                         .weights = op.weights,
                         .of_vocabulary = outer.count.power(Symbol::vocabulary) > 0});
      }
    }
  }
  return exprs;
}

MatrixList evaluate(const std::vector<MatrixExpr>& exprs, const Bindings& letters) {
  MatrixList matrices;
  matrices.reserve(exprs.size());
  for (const MatrixExpr& expr : exprs) {
    matrices.push_back({.rows = expr.rows.evaluate(letters),
                        .columns = expr.columns.evaluate(letters),
                        .count = expr.count.evaluate(letters),
                        .weights = expr.weights,
                        .of_vocabulary = expr.of_vocabulary});
  }
  return matrices;
}

MatrixList matrices_of_rank(const std::vector<MatrixList>& of_kinds, const KindCounts& counts, bool tied,
                            bool both_ends) {
  EXPECTS(of_kinds.size() == counts.size());
  MatrixList sum;
  for (std::size_t i = 0; i < of_kinds.size(); ++i) {
    if (counts[i] == 0) continue;
    const bool of_embedding = tied && both_ends && i + 1 == of_kinds.size();
    for (WeightMatrices alike : of_kinds[i]) {
      if (of_embedding && alike.of_vocabulary) continue;
      alike.count *= real(counts[i]);
      sum.push_back(alike);
    }
  }
  return sum;
}

MatrixList of_class(const MatrixList& matrices, WeightClass weights) {
  MatrixList found;
  std::copy_if(matrices.begin(), matrices.end(), std::back_inserter(found),
               [&](const WeightMatrices& it) { return it.weights == weights; });
  return found;
}

MatrixList hidden_matrices(const MatrixList& matrices) {
  MatrixList hidden;
  std::copy_if(matrices.begin(), matrices.end(), std::back_inserter(hidden),
               [](const WeightMatrices& it) { return !it.of_vocabulary; });
  return hidden;
}

}  // namespace headroom
