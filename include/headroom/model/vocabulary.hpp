// Division of the vocabulary among TP ranks at the two ends of a model.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// Division of the word embedding. vocabulary: each rank holds a part of its rows, and ranks add up what they
// look up [Megatron-LM, VocabParallelEmbedding; PyTorch, RowwiseParallel of an nn.Embedding]. none: every
// rank holds all rows.
enum class EmbeddingParallel : std::uint8_t { vocabulary, none };

// Division of the output layer.
//   vocabulary  each rank holds a part of the output layer and of the logits, and the loss works on parts
//               [Megatron-LM, vocab-parallel cross entropy; PyTorch, loss_parallel]
//   gathered    each rank holds a part of the output layer; the logits are gathered for a loss that needs
//               all of them [PyTorch, ColwiseParallel with output_layouts=Replicate()]
//   none        every rank holds the whole output layer and computes all logits
enum class LossParallel : std::uint8_t { vocabulary, gathered, none };

struct VocabularyParallel {
  EmbeddingParallel embedding = EmbeddingParallel::vocabulary;
  LossParallel loss = LossParallel::vocabulary;
  bool distributed = false;  // the plain loss over parts of several ranks is DTensor's
  friend auto operator<=>(const VocabularyParallel&, const VocabularyParallel&) = default;
};

// Returns the division for tied embeddings, which are one matrix: if a rank holds all of it at one end, it
// also does at the other.
constexpr VocabularyParallel of_tied(const VocabularyParallel& own) {
  const bool whole = own.embedding == EmbeddingParallel::none || own.loss == LossParallel::none;
  return whole ? VocabularyParallel{EmbeddingParallel::none, LossParallel::none} : own;
}

template <>
inline constexpr std::array<Spelling<EmbeddingParallel>, 2> spellings<EmbeddingParallel>{{
    {EmbeddingParallel::vocabulary, "vocabulary"},
    {EmbeddingParallel::none, "none"},
}};
template <>
inline constexpr std::array<Spelling<LossParallel>, 3> spellings<LossParallel>{{
    {LossParallel::vocabulary, "vocabulary"},
    {LossParallel::gathered, "gathered"},
    {LossParallel::none, "none"},
}};

}  // namespace headroom
