// Variants of attention in today's models beside heads and kernels, and the order of attention, MLP,
// normalizations and residual adds.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// Multi-head latent attention [DeepSeek-V2, arXiv:2405.04434, section 2.1]. Queries, keys and values of every
// head are projected up from latents that all heads share. A head of q and k has a part without and a part
// with rotary positions. All heads share the rotary part of k.
struct LatentAttention {
  std::int64_t q_rank = 0;           // R; 0: q is projected from the tokens
  std::int64_t kv_rank = 0;          // w
  std::int64_t nope_head_size = 0;   // i, of q and k without positions
  std::int64_t rope_head_size = 0;   // j, of q and k with them
  std::int64_t value_head_size = 0;  // l
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// Normalization of q and k. per_head: RMSNorm over a head, with weights that all heads share. full: over all
// heads (OLMo 2). l2: per head, without weights (Llama 4).
enum class QkNorm : std::uint8_t { none, per_head, full, l2 };

// Place of the normalizations of attention and MLP: before them, after them and before the residual add (OLMo
// 2), or both (Gemma).
enum class NormPosition : std::uint8_t { before, after, both };

// Input of the MLP. sequential: the stream after attention was added. parallel: the input of attention, with
// a normalization of its own (GPT-NeoX). parallel_shared_norm: the input of attention, with the same
// normalization (GPT-J, Falcon, Command R).
enum class ResidualForm : std::uint8_t { sequential, parallel, parallel_shared_norm };

template <>
inline constexpr std::array<Spelling<QkNorm>, 4> spellings<QkNorm>{{
    {QkNorm::none, "none"},
    {QkNorm::per_head, "per_head"},
    {QkNorm::full, "full"},
    {QkNorm::l2, "l2"},
}};
template <>
inline constexpr std::array<Spelling<NormPosition>, 3> spellings<NormPosition>{{
    {NormPosition::before, "before"},
    {NormPosition::after, "after"},
    {NormPosition::both, "both"},
}};
template <>
inline constexpr std::array<Spelling<ResidualForm>, 3> spellings<ResidualForm>{{
    {ResidualForm::sequential, "sequential"},
    {ResidualForm::parallel, "parallel"},
    {ResidualForm::parallel_shared_norm, "parallel_shared_norm"},
}};

}  // namespace headroom
