// The operators of PyTorch whose kernels become samples, and where their arguments stand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headroom/time/attention.hpp"

namespace headroom {

// The places of the factors among the arguments [PyTorch, aten/src/ATen/native/native_functions.yaml].
struct ProductOperator {
  std::string_view name;
  std::size_t first;
};
inline constexpr std::array<ProductOperator, 6> product_operators{{{"aten::mm", 0},
                                                                   {"aten::addmm", 1},
                                                                   {"aten::addmm_", 1},
                                                                   {"aten::bmm", 0},
                                                                   {"aten::baddbmm", 1},
                                                                   {"aten::_scaled_mm", 0}}};

// Queries, keys and values follow one another from `first` on. Sources: native_functions.yaml; flash_attn,
// flash_attn_interface.py.
struct AttentionOperator {
  std::string_view name;
  AttentionPass pass;
  std::size_t first;
  std::size_t lengths;  // of sequences packed into one; 0 where it takes none
  std::size_t causal;
  std::size_t window;  // keys before a query, -1 for all; 0 where it takes none
  bool heads_first;    // batch, heads, sequence, head size; else batch, sequence, heads, head size
};
inline constexpr std::array<AttentionOperator, 8> attention_operators{{
    {"aten::_flash_attention_forward", AttentionPass::forward, 0, 3, 8, 0, false},
    {"aten::_flash_attention_backward", AttentionPass::backward, 1, 6, 11, 0, false},
    {"aten::_scaled_dot_product_cudnn_attention", AttentionPass::forward, 0, 0, 6, 0, true},
    {"aten::_scaled_dot_product_cudnn_attention_backward", AttentionPass::backward, 1, 9, 14, 0, true},
    {"aten::_cudnn_attention_forward", AttentionPass::forward, 0, 4, 10, 0, true},
    {"aten::_cudnn_attention_backward", AttentionPass::backward, 1, 9, 14, 0, true},
    {"flash_attn::_flash_attn_forward", AttentionPass::forward, 0, 0, 5, 6, false},
    {"flash_attn::_flash_attn_backward", AttentionPass::backward, 1, 0, 11, 12, false},
}};

// Which arguments a memory-bound operator reads, one after another from `first` on, and what it writes.
enum class Written : std::uint8_t {
  broadcast,  // a tensor of all extents that those read have, in the widest of their types
  first,      // as large as the first argument, in its type
  with_mask,  // the same, and a byte for each element
};
struct StreamingOperator {
  std::string_view name;
  std::size_t first;
  std::size_t count;
  Written written;
};
inline constexpr std::array<StreamingOperator, 23> streaming_operators{{
    {"aten::add", 0, 2, Written::broadcast},
    {"aten::sub", 0, 2, Written::broadcast},
    {"aten::mul", 0, 2, Written::broadcast},
    {"aten::div", 0, 2, Written::broadcast},
    {"aten::add_", 0, 2, Written::first},
    {"aten::sub_", 0, 2, Written::first},
    {"aten::mul_", 0, 2, Written::first},
    {"aten::div_", 0, 2, Written::first},
    {"aten::copy_", 1, 1, Written::first},
    {"aten::fill_", 0, 0, Written::first},
    {"aten::zero_", 0, 0, Written::first},
    {"aten::relu", 0, 1, Written::first},
    {"aten::clamp_min", 0, 1, Written::first},
    {"aten::gelu", 0, 1, Written::first},
    {"aten::silu", 0, 1, Written::first},
    {"aten::sigmoid", 0, 1, Written::first},
    {"aten::tanh", 0, 1, Written::first},
    {"aten::native_dropout", 0, 1, Written::with_mask},
    {"aten::gelu_backward", 0, 2, Written::first},
    {"aten::silu_backward", 0, 2, Written::first},
    {"aten::sigmoid_backward", 0, 2, Written::first},
    {"aten::tanh_backward", 0, 2, Written::first},
    {"aten::threshold_backward", 0, 2, Written::first},
}};

template <class Rows>
auto find_in(const Rows& rows, std::string_view name) -> decltype(&rows[0]) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace headroom
