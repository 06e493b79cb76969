// What Megatron-LM's router and dispatchers launch beside the kernels of the table, by operators that work on numbers of tokens and
// experts [router.py, moe_utils.py, token_dispatcher.py of core 0.15].
#pragma once

#include "headroom/model/kernels.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom::routing {

// The best are chosen, and a row of zeros with their probabilities and another with their marks is made of every token:
// topk, two zeros_like, two scatter, two casts, the tokens of each expert. Back: a gather, and a topk's zeros and scatter.
inline constexpr SmallOperators choice{8, 3};
// Scores of the chosen are gathered, summed, 1e-20 added, divided by that and scaled: an operator each, and each back again.
inline constexpr SmallOperators normalization{5, 5};
// Scores of all experts and their best once more (7), the loss (4), and its record (2).
inline constexpr SmallOperators auxiliary_loss{13, 6};
// Tokens of each expert are counted and gathered from all ranks, summed up in three ways and copied to the host four times;
// three kernels number the rows.
inline constexpr SmallOperators splits{12, 0};
// Without splits: layout or metadata of a dispatch, and the numbers of the rows.
inline constexpr SmallOperators layout{6, 0};
// Of chunks that are sorted by expert.
inline constexpr SmallOperators chunk_map{1, 0};

// What adds biases to what experts make; its kernels are all that does.
inline constexpr std::string_view expert_bias = "expert_bias";

// Each expert's bias times the probability of the row is added to what the expert makes, one operator after another in the dtype of
// the probabilities, the rows of all experts are put together and cast [experts.py, TEGroupedMLP._apply_bias]. Bytes an element,
// with a probability of p bytes: product p, sum 2 + 2 p, concatenation 2 p, cast p + 2; back a cast of the gradient, of the
// rows' and their concatenation, and a product and a sum each for bias and probability, 3 p.
// As one kernel the rows are read and written, and back their gradient is read once for both [Transformer Engine,
// pytorch/ops/basic/grouped_linear.py, scale_bias; pytorch/triton/grouped_dbias_dscales.py].
constexpr Traffic weighted_bias(const Monomial& elements, Dtype probabilities, Fusion kernel) {
  const std::int64_t p = size_of(probabilities);
  const std::int64_t half = size_of(Dtype::half);
  if (kernel == Fusion::fused) {
    return {.name = expert_bias,
            .elements = elements,
            .placement = Placement::routed,
            .forward = 2 * half,
            .backward = half};
  }
  const std::int64_t cast = probabilities == Dtype::half ? 0 : p + half;
  return {.name = expert_bias,
          .elements = elements,
          .placement = Placement::routed,
          .forward = p + half + 2 * p + 2 * p + cast,
          .backward = 2 * cast + 2 * half + 6 * p,
          .forward_kernels = 2,
          .backward_kernels = 5,
          .by_expert = true};
}

}  // namespace headroom::routing
