// What pointwise operators move where a framework runs them one after another, each from memory to memory: bytes an element, counted
// operator by operator in the source of those who call them. A kernel reads its inputs and writes its output; what is as small as a
// number for each token counts as nothing, but for its launch (SmallOperators).
//
//                      forward                                       backward
//   norm, unfused      to fp32, square, mean, product, to half,      of each in turn; the square's is self^1, times 2, times the
//                      weight                                        gradient; those of both uses of the fp32 input are added
//   norm, composite    to fp32, square, mean, product, weight,       the same, all of it in fp32
//                      to half
//   rotary, complex    to fp32, complex product, to half             the same back
//   rotary,            cosine, half negated, halves put together,    both products, the half negated, each half padded with zeros,
//     rotate_half      sine, sum                                     three gradients added
//   rotary,            half negated, chunks put together, cosine,    both products, the half negated, chunks put together, zeros for
//     rotate_chunks    sine, sum, put behind one another             the part without positions, three gradients added
//   gated activation   activation, product                           product with either factor, of the activation
//   the same, clamped  scale, sigmoid, product, shift, product       the same back, and the gradients of both uses of the gate added
//   clamp              of either half, put together                  comparisons, selection, halves put together
#pragma once

#include "headroom/model/kernels.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

namespace detail {

inline constexpr std::int64_t half_size = size_of(Dtype::half);
inline constexpr std::int64_t fp32_size = size_of(Dtype::fp32);
inline constexpr std::int64_t cast_size = half_size + fp32_size;

// An operator on so many operands of one element size, that makes one.
constexpr std::int64_t operator_bytes(int operands, std::int64_t size) { return (operands + 1) * size; }

}  // namespace detail

// Beside the chain of a normalization: the mean's shift and root; of the root three, and a mean's gradient before it is spread.
inline constexpr SmallOperators norm_operators{2, 4};

// Of an RMSNorm [transformers, models/llama/modeling_llama.py, LlamaRMSNorm; PyTorch, aten/src/ATen/native/layer_norm.cpp and
// torch/csrc/autograd/FunctionsManual.cpp: pow_backward, mean_backward].
constexpr Traffic norm_chain(NormKernel kernel, std::string_view name, const Monomial& elements,
                             Placement placement, Dtype input) {
  using namespace detail;
  const bool casts = input == Dtype::half;
  const std::int64_t weighted = kernel == NormKernel::composite ? fp32_size : half_size;
  Traffic chain{.name = name, .elements = elements, .placement = placement};
  chain.forward = (casts ? cast_size : 0) + operator_bytes(1, fp32_size) + fp32_size +
                  operator_bytes(1, fp32_size) + operator_bytes(1, weighted) + cast_size;
  chain.forward_kernels = casts ? 6 : 5;
  const std::int64_t of_weight =  // of the unscaled output, and of the weight, summed over tokens
      operator_bytes(1, weighted) + operator_bytes(2, weighted) + weighted;
  const std::int64_t of_product = operator_bytes(1, fp32_size) + operator_bytes(2, fp32_size) + fp32_size;
  const std::int64_t of_square = 2 * operator_bytes(1, fp32_size) + operator_bytes(2, fp32_size);
  const std::int64_t of_mean = fp32_size;  // spread over the elements
  chain.backward = of_weight + cast_size + of_product + of_mean + of_square + operator_bytes(2, fp32_size) +
                   (casts ? cast_size : 0);
  chain.backward_kernels = casts ? 13 : 12;
  return chain;
}

// Of q or k [torchtitan, models/llama3/model.py, apply_rotary_emb; transformers, models/llama/modeling_llama.py, apply_rotary_pos_emb].
constexpr Traffic rotary_chain(RotaryKernel kernel, std::string_view name, const Monomial& elements,
                               Placement placement) {
  using namespace detail;
  Traffic chain{.name = name, .elements = elements, .placement = placement};
  if (kernel == RotaryKernel::complex) {
    chain.forward = chain.backward = cast_size + operator_bytes(1, fp32_size) + cast_size;
    chain.forward_kernels = chain.backward_kernels = 3;
    return chain;
  }
  if (kernel == RotaryKernel::rotate_chunks) {
    const std::int64_t copied = operator_bytes(1, half_size);
    const std::int64_t multiplied = operator_bytes(1, half_size);
    const std::int64_t added = operator_bytes(2, half_size);
    chain.forward = copied / 2 + copied + 2 * multiplied + added + copied;
    chain.forward_kernels = 6;
    chain.backward = 2 * multiplied + copied / 2 + copied + half_size + 2 * added;
    chain.backward_kernels = 7;
    return chain;
  }
  const std::int64_t product = operator_bytes(1, half_size);
  const std::int64_t negated = operator_bytes(1, half_size) / 2;
  const std::int64_t padded = half_size + operator_bytes(1, half_size) / 2;  // zeros, and a half copied there
  const std::int64_t sum = operator_bytes(2, half_size);
  chain.forward = product + negated + operator_bytes(1, half_size) + product + sum;
  chain.forward_kernels = 5;
  chain.backward = 2 * product + negated + 2 * padded + 2 * sum;
  chain.backward_kernels = 9;
  return chain;
}

// Beside the chain of a rotation in chunks: both tables are computed, scaled and cast.
inline constexpr SmallOperators table_operators{6, 0};

// The clamps of both halves of what an activation reads, for each element that it makes: of the gate from above, of the other from both
// sides. Back each is a selection by comparisons that make a byte, one or two of them and their conjunction; `together`: the halves are
// put together for the activation's one kernel [Megatron-LM, core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl;
// PyTorch, torch/csrc/autograd/FunctionsManual.cpp, clamp_backward].
constexpr Traffic clamp_chain(std::string_view name, const Monomial& elements, Placement placement,
                              bool together) {
  using namespace detail;
  constexpr std::int64_t mask = size_of(Dtype::boolean);
  const std::int64_t clamped = operator_bytes(1, half_size);
  const std::int64_t compared = half_size + mask;
  const std::int64_t selected = mask + operator_bytes(1, half_size);
  const std::int64_t joined = 2 * operator_bytes(1, half_size);
  Traffic chain{.name = name, .elements = elements, .placement = placement};
  chain.forward = 2 * clamped + (together ? joined : 0);
  chain.forward_kernels = together ? 3 : 2;
  chain.backward = compared + selected + 2 * compared + 3 * mask + selected + joined;
  chain.backward_kernels = 7;
  return chain;
}

// The zeros that the two selections of its backward pass choose from.
inline constexpr SmallOperators clamp_operators{0, 2};

// Of an activation and its product with a second projection, for each element that they make; with a factor for each row another product.
constexpr Traffic gated_chain(std::string_view name, const Monomial& elements, Placement placement,
                              bool with_factor, bool clamped = false) {
  using namespace detail;
  const std::int64_t activated = operator_bytes(1, half_size);
  const std::int64_t product = operator_bytes(2, half_size);
  Traffic chain{.name = name, .elements = elements, .placement = placement};
  if (clamped) {  // x sigmoid(c x) (y + 1)
    chain.forward = 3 * activated + 2 * product;
    chain.forward_kernels = 5;
    chain.backward = 2 * product + 2 * product + product + activated + product;
    chain.backward_kernels = 7;
    if (with_factor) {
      chain.forward += activated;
      ++chain.forward_kernels;
      chain.backward += activated + product + half_size;
      chain.backward_kernels += 3;
    }
    return chain;
  }
  chain.forward = activated + product + (with_factor ? operator_bytes(1, half_size) : 0);
  chain.forward_kernels = with_factor ? 3 : 2;
  chain.backward = 3 * product + (with_factor ? activated + product + half_size : 0);
  chain.backward_kernels = with_factor ? 6 : 3;
  return chain;
}

}  // namespace headroom
