// Low-rank adapters that are trained in place of weights (LoRA), and the dtype of the frozen base weights.
// adapters.hpp writes them into op tables.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/fraction.hpp"
#include "headroom/core/names.hpp"
#include "headroom/expr/rational.hpp"
#include "headroom/model/parts/mixers.hpp"

namespace headroom {

// Dtype of the layers' frozen linears. nf4: 4 bits a weight, an 8-bit maximum for every 64 weights, and an
// FP32 maximum for every 256 of these maxima. nf4_single: an FP32 maximum for every 64 weights. int8: 8 bits
// a weight; the FP32 maximum of each row is left out. A GEMM's weights are converted to BF16 at each use
// [arXiv:2305.14314, double quantization; arXiv:2208.07339; bitsandbytes].
enum class BaseDtype : std::uint8_t { bf16, nf4, nf4_single, int8 };

constexpr bool is_quantized(BaseDtype base) { return base != BaseDtype::bf16; }

// Returns the bytes of a frozen weight: bf16 2; nf4 1/2 + 1/64 + 4/(64 256); nf4_single 1/2 + 4/64; int8 1.
constexpr Rational weight_bytes(BaseDtype base) {
  switch (base) {
    case BaseDtype::nf4: return {2113, 4096};
    case BaseDtype::nf4_single: return {9, 16};
    case BaseDtype::int8: return 1;
    case BaseDtype::bf16: break;
  }
  return 2;
}

struct Lora {
  std::int64_t rank = 0;             // R; 0: no adapters, the weights are trained
  std::vector<std::string> targets;  // adapted linears, by the names below; empty: all in the layers
  BaseDtype base = BaseDtype::bf16;
  Fraction dropout;  // on an adapter's input
  friend bool operator<(const Lora& x, const Lora& y);
  friend bool operator==(const Lora&, const Lora&) = default;
};

constexpr bool trains_adapters(const Lora& lora) { return lora.rank > 0; }

inline constexpr auto lora_targets = with_those_of_mixers(
    std::array<LoraTarget, 15>{{
        {"q_proj", "q", {"qkv"}, 0},
        {"k_proj", "k", {"qkv"}, 1},
        {"v_proj", "v", {"qkv"}, 2},
        {"qkv_proj", "linear_qkv", {"qkv"}, all_parts},
        {"o_proj", "linear_proj", {"projection"}, all_parts},
        {"gate_proj", "gate", {"mlp_up", "expert_up", "shared_up"}, 0},
        {"up_proj", "up", {"mlp_up", "expert_up", "shared_up"}, 1},
        {"gate_up_proj", "linear_fc1", {"mlp_up", "expert_up", "shared_up"}, all_parts},
        {"down_proj", "linear_fc2", {"mlp_down", "expert_down", "shared_down"}, all_parts},
        {"q_a_proj", "linear_q_down_proj", {"q_down"}, all_parts},
        {"q_b_proj", "linear_q_up_proj", {"q_up"}, all_parts},
        {"kv_a_proj_with_mqa", "linear_kv_down_proj", {"kv_down"}, all_parts},
        {"kv_b_proj", "linear_kv_up_proj", {"kv_up"}, all_parts},
        {"o", "proj", {"projection"}, all_parts},
        {"down", "fc2", {"mlp_down", "expert_down", "shared_down"}, all_parts},
    }},
    lora_targets_of_mixers);

// Name that stands for all linears. No other name may be given beside it.
inline constexpr std::string_view every_linear = "all-linear";

// Returns the target of that name, or null if there is none.
const LoraTarget* find_target(std::string_view name);

template <>
inline constexpr std::array<Spelling<BaseDtype>, 4> spellings<BaseDtype>{{
    {BaseDtype::bf16, "bf16"},
    {BaseDtype::nf4, "nf4"},
    {BaseDtype::nf4_single, "nf4_single"},
    {BaseDtype::int8, "int8"},
}};

}  // namespace headroom
