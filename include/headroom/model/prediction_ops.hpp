// Op tables of multi-token prediction [DeepSeek-V3, arXiv:2412.19437, section 2.2], as Megatron-Core runs it
// [core/transformer/multi_token_prediction.py]. Prediction depths follow the model's last layer one after
// another. Each depth normalizes the hidden states and the embedding of the token one further ahead,
// concatenates them, and projects them from 2 h to h numbers. A layer like the model's last and a head
// follow. Embedding and output layer are the model's own.
#pragma once

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/ends_ops.hpp"

namespace headroom {

// Returns the table for embedding the tokens ahead with the model's embedding.
HEADROOM_VECTOR_CONSTEXPR OpTable prediction_embedding_ops(const Architecture& architecture,
                                                           const VocabularyParallel& vocabulary = {}) {
  OpTable table = embedding_ops(architecture, vocabulary);
  for (std::size_t i = 0; i < table.ops().size(); ++i) table.change(i).parameters = {};
  return table;
}

HEADROOM_VECTOR_CONSTEXPR OpTable prediction_input_ops(const Architecture& architecture) {
  using namespace symbols;
  OpBuilder input{.arch = architecture};
  OpTable& table = input.table;
  const Dtype stream = architecture.kernels.residual_dtype;
  const ValueId embedding = table.value({"embedding of the next token", s * b * h, stream});
  const ValueId hidden = table.value({"hidden states", s * b * h, stream});
  const ValueId token = input.norm("norm_embedding", embedding);
  const ValueId state = input.norm("norm_hidden", hidden);
  const ValueId both = table.value({"both, side by side", 2 * s * b * h});
  table.op({.name = "join", .kind = OpKind::copy, .inputs = {token, state}, .outputs = {both}});
  // A column-parallel linear with gathered output. The gather moves as many bytes as the sum over ranks that
  // stands here.
  const ValueId projected = table.value({"projected", s * b * h, stream});
  input.linear("join_projection", both, {projected},
               {OpBuilder::of_tokens({2 * h, Placement::whole}, {{h, Placement::split}})}, {});
  return table;
}

// Returns the table of a depth's head: its own normalization, and the model's output layer.
HEADROOM_VECTOR_CONSTEXPR OpTable prediction_head_ops(const Architecture& architecture,
                                                      const VocabularyParallel& vocabulary = {}) {
  OpTable table = head_ops(architecture, vocabulary);
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    Op& op = table.change(i);
    if (op.kind != OpKind::linear) continue;
    op.shares_weights = true;
    op.parameters = {};
  }
  return table;
}

}  // namespace headroom
