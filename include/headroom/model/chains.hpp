// Memory traffic of pointwise operators that a framework runs one after another, each from memory to memory:
// bytes an element, counted operator by operator in the callers' source. A kernel reads its inputs and writes
// its output. Values as small as a number a token count only as launches (SmallOperators).
//
//   norm, unfused
//     forward    to fp32, square, mean, product, to half, weight
//     backward   of each in turn; the square's is self^1, times 2, times the gradient; those of both uses of
//                the fp32 input are added
//   norm, composite
//     forward    to fp32, square, mean, product, weight, to half
//     backward   the same, all of it in fp32
//   rotary, complex
//     forward    to fp32, complex product, to half
//     backward   the same back
//   rotary, rotate_half
//     forward    cosine, half negated, halves concatenated, sine, sum
//     backward   both products, the half negated, each half padded with zeros, three gradients added
//   rotary, rotate_chunks
//     forward    half negated, chunks concatenated, cosine, sine, sum, concatenated
//     backward   both products, the half negated, chunks concatenated, zeros for the part without positions,
//                three gradients added
//   gated activation
//     forward    activation, product
//     backward   product with either factor, of the activation
//   gated activation, clamped
//     forward    scale, sigmoid, product, shift, product
//     backward   the same back, and the gradients of both uses of the gate added
//   clamp
//     forward    of either half, concatenated
//     backward   comparisons, selection, halves concatenated
#pragma once

#include "headroom/model/kernels.hpp"
#include "headroom/model/op_table.hpp"

namespace headroom {

namespace detail {

inline constexpr std::int64_t half_size = size_of(Dtype::half);
inline constexpr std::int64_t fp32_size = size_of(Dtype::fp32);
inline constexpr std::int64_t cast_size = half_size + fp32_size;

// Returns the bytes an element of an operator with `operands` operands and one result, all of `size` bytes.
constexpr std::int64_t operator_bytes(int operands, std::int64_t size) { return (operands + 1) * size; }

}  // namespace detail

// Small operators beside the chain of a normalization: the mean's shift and root. Backward: three for the
// root, and one for the mean's gradient before it is spread.
inline constexpr SmallOperators norm_operators{2, 4};

// Returns the traffic of an RMSNorm [transformers, models/llama/modeling_llama.py, LlamaRMSNorm; PyTorch,
// aten/src/ATen/native/layer_norm.cpp and torch/csrc/autograd/FunctionsManual.cpp: pow_backward,
// mean_backward].
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

// Returns the traffic of q or k [torchtitan, models/llama3/model.py, apply_rotary_emb; transformers,
// models/llama/modeling_llama.py, apply_rotary_pos_emb].
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

// Small operators beside the chain of rotate_chunks: both tables are computed, scaled and cast.
inline constexpr SmallOperators table_operators{6, 0};

// Returns the traffic of the clamps of both halves that an activation reads, for each element of its output.
// The gate is clamped from above, the other half from both sides. Backward, each clamp is a selection by one
// or two comparisons, which write a byte, and their conjunction. `together`: the halves are concatenated for
// a fused activation [Megatron-LM, core/fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl; PyTorch,
// torch/csrc/autograd/FunctionsManual.cpp, clamp_backward].
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

// Small operators of the clamps' backward pass: the zeros that the two selections choose from.
inline constexpr SmallOperators clamp_operators{0, 2};

// Returns the traffic of an activation and its product with a second projection, for each element of the
// output. A factor for each token adds another product.
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
