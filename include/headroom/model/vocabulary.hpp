// What tensor-parallel ranks divide of the vocabulary at the two ends of a model.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// vocabulary: each rank has its part of the rows of the word embedding, and ranks add up what they find in them [Megatron-LM,
// VocabParallelEmbedding; PyTorch, RowwiseParallel of an nn.Embedding]. none: every rank has all rows.
enum class EmbeddingParallel : std::uint8_t { vocabulary, none };

// vocabulary: each rank has its part of the output layer and of the logits, and the loss is over parts [Megatron-LM, vocab-parallel
// cross entropy; PyTorch, loss_parallel]. gathered: its part of the output layer, and all logits, which are gathered for a loss that
// knows no parts [PyTorch, ColwiseParallel with output_layouts=Replicate()]. none: every rank has all of the output layer and makes
// all logits.
enum class LossParallel : std::uint8_t { vocabulary, gathered, none };

struct VocabularyParallel {
  EmbeddingParallel embedding = EmbeddingParallel::vocabulary;
  LossParallel loss = LossParallel::vocabulary;
  friend auto operator<=>(const VocabularyParallel&, const VocabularyParallel&) = default;
};

// Tied embeddings are one matrix: where a rank has all of it at one end, it has so at the other.
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
