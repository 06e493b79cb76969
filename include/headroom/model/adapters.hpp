// Training of low-rank adapters in place of weights (LoRA), whose base may be quantized to NF4 (QLoRA). A policy rewrites the op
// table of a layer once, before anything reads it:
//
//   frozen   what has weights in a table: it has no gradient of them, so a linear does not keep its input for that. What the
//            gradient of its input needs, it keeps as ever: normalizations their input, activations theirs
//   LORA_dropout  in training with dropout, of the input for each adapter apart; keeps the mask [PEFT, tuners/lora/layer.py, lora_dropout;
//            Megatron-Bridge, peft/utils.py, ParallelLinearAdapter, dropout_position pre]
//   LORA_a   [tokens x in] [in x R] beside a linear that is adapted; keeps the input, dropped or not
//   LORA_b   [tokens x R] [R x out]; keeps the R numbers of each token
//   LORA_add scales what comes of it and adds it to the linear's output
//
// Of tensor-parallel ranks LORA_a divides R beside a column-parallel linear, on the input that was gathered for that, which
// it keeps whole, and its input beside a row-parallel one; LORA_b divides its output. What ranks exchange of R numbers a token
// is not counted [Megatron-Bridge, peft/utils.py, ParallelLinearAdapter]. Experts have adapters of their own each.
// Embedding and output layer are frozen and have none. No gradient goes on from the first layer: of the embedding nothing is
// kept, and what the first layer could do without is counted all the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/fraction.hpp"
#include "headroom/core/names.hpp"
#include "headroom/expr/rational.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/op_table.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// Of frozen linears of layers. nf4: 4 bits, with the largest of every 64 of them in 8 bits, and that of every 256 of these in fp32;
// a product's weights are made BF16 for each of its uses [arXiv:2305.14314, double quantization; bitsandbytes].
enum class BaseDtype : std::uint8_t { bf16, nf4 };

// Bytes of a weight: 1/2 + 1/64 + 4/(64 256).
inline constexpr Rational nf4_bytes(2113, 4096);

struct Lora {
  std::int64_t rank = 0;             // R; 0: weights are trained
  std::vector<std::string> targets;  // linears that are adapted, by names below; empty: all of layers
  BaseDtype base = BaseDtype::bf16;
  Fraction dropout;  // of an adapter's input
  friend auto operator<=>(const Lora&, const Lora&) = default;
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

// A name that stands for all of them; one alone.
inline constexpr std::string_view every_linear = "all-linear";

// Null: none.
const LoraTarget* find_target(std::string_view name);

// Whether an op is a linear of the name. What is not gated has no gate.
bool adapts(const OpTable& table, const Op& op, const LoraTarget& target);

// Of a layer (`adapted`), or of an end of the model, which is frozen alone. Linears that are adapted all at once have an adapter
// for each of q, k and v, and of gate and up, where q, k and v are linears of their own, and one for what is one linear.
OpTable with_adapters(const OpTable& table, CrossEntropy loss, const Lora& lora, bool adapted);

// The layers of a model; as they are where weights are trained.
ModelLayers with_adapters(ModelLayers layers, CrossEntropy loss, const Lora& lora);

template <>
inline constexpr std::array<Spelling<BaseDtype>, 2> spellings<BaseDtype>{{
    {BaseDtype::bf16, "bf16"},
    {BaseDtype::nf4, "nf4"},
}};

}  // namespace headroom
