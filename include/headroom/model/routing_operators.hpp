// Small operators that Megatron-LM's router and dispatchers launch beside the kernels of the table. They work
// on numbers of tokens and experts [router.py, moe_utils.py, token_dispatcher.py of core 0.15].
#pragma once

#include "headroom/model/kernels.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom::routing {

// Choice of the best experts. For every token, a row of zeros with their probabilities and another with their
// marks are made: topk, two zeros_like, two scatter, two casts, the tokens of each expert. Backward: a
// gather, and a topk's zeros and scatter.
inline constexpr SmallOperators choice{8, 3};
// Normalization: the chosen scores are gathered, summed, 1e-20 is added to the sum, and they are divided by
// it and scaled. One operator each, and one each backward.
inline constexpr SmallOperators normalization{5, 5};
// Auxiliary loss: scores of all experts and their best once more (7), the loss (4), and its record (2).
inline constexpr SmallOperators auxiliary_loss{13, 6};
// Splits: the tokens of each expert are counted, gathered from all ranks, summed in three ways and copied to
// the host four times. Three kernels number the tokens.
inline constexpr SmallOperators splits{12, 0};
// Layout without splits: layout or metadata of a dispatch, and the numbering of the tokens.
inline constexpr SmallOperators layout{6, 0};
// Map of chunks that are sorted by expert.
inline constexpr SmallOperators chunk_map{1, 0};

// Name of the traffic that adds biases to the experts' output. No other kernels add them.
inline constexpr std::string_view expert_bias = "expert_bias";

// Returns the traffic of adding each expert's bias, times the token's probability, to the expert's output.
//
// unfused: operators run one after another in the dtype of the probabilities. The outputs of all experts are
// then concatenated and cast [experts.py, TEGroupedMLP._apply_bias]. Bytes an element, with a probability of
// p bytes: product p, sum 2 + 2 p, concatenation 2 p, cast p + 2. Backward: a cast of the gradient, of the
// rows' and their concatenation, and a product and a sum each for bias and probability, 3 p.
// fused: one kernel reads and writes the tokens. Backward, their gradient is read once for both [Transformer
// Engine, pytorch/ops/basic/grouped_linear.py, scale_bias; pytorch/triton/grouped_dbias_dscales.py].
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
