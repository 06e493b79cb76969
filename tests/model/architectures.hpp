// Architectures that theorems about op tables are told of.
#pragma once

#include "headroom/model/transformer.hpp"

namespace headroom::tests {

// Llama's layer: RMSNorm, rotary positions, SwiGLU, no bias, no dropout, flash attention.
inline constexpr Architecture llama{.activation = Activation::swiglu,
                                    .normalization = Normalization::rms_norm,
                                    .positions = Positions::rotary,
                                    .linear_bias = false,
                                    .qkv_bias = false,
                                    .hidden_dropout = false,
                                    .attention_dropout = false,
                                    .kernels = {.attention = AttentionKernel::flash}};

constexpr Architecture llama_with(const Experts& experts) {
  Architecture architecture = llama;
  architecture.experts = experts;
  return architecture;
}

// Eight experts of which a token takes two, as Mixtral has them; and one more that all tokens share.
inline constexpr Architecture sparse = llama_with({.count = 8, .per_token = 2});
inline constexpr Architecture with_shared = llama_with({.count = 8, .per_token = 2, .shared_feedforward = 1});

}  // namespace headroom::tests
