// Shapes of an op's GEMMs: the one of the forward pass and the two of the backward pass; those of flash
// attention, and of a scan.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "headroom/time/attention.hpp"
#include "headroom/time/op_work.hpp"
#include "headroom/time/scan.hpp"

namespace headroom {

inline std::int64_t whole_extent(const Monomial& count, const Bindings& letters) {
  return std::max<std::int64_t>(std::llround(count.evaluate(letters)), 1);
}

inline Gemm shape_of(const ProductWork& it, const Bindings& letters) {
  Gemm gemm{.batch = whole_extent(it.batch, letters),
            .rows = whole_extent(it.rows, letters),
            .columns = 0,
            .inner = whole_extent(it.inner, letters),
            .result_bytes = size_of(it.result),
            .dtype = it.dtype};
  for (const Monomial& outer : it.outer) gemm.columns += whole_extent(outer, letters);
  return gemm;
}

// Return the GEMMs for the gradients of both operands of C = A B: dA = dC B^T and dB^T = dC^T A.
inline Gemm left_gradient(Gemm product, Dtype result) {
  std::swap(product.columns, product.inner);
  product.result_bytes = size_of(result);
  return product;
}
inline Gemm right_gradient(const Gemm& product, Dtype result) {
  Gemm gradient = left_gradient(product, result);
  gradient.rows = product.columns;
  gradient.inner = product.rows;
  return gradient;
}

// Returns the GEMMs of scores and context.
inline Attention attention_of(const OpWork& work, const Bindings& letters) {
  const ProductWork& scores = work.products[0];
  const ProductWork& context = work.products[1];
  const Monomial& keys = scores.outer[0];
  const double met = keys.evaluate(letters);
  const bool window = keys.power(Symbol::keys_met) > 0 && met < letters[Symbol::sequence];
  return {.batch = whole_extent(scores.batch, letters),
          .queries = whole_extent(scores.rows, letters),
          .keys = met,
          .head_size = whole_extent(scores.inner, letters),
          .value_size = whole_extent(context.outer[0], letters),
          .mask = window ? Mask::window : Mask::causal,
          .dtype = scores.dtype};
}

// Returns the GEMMs of C with B in chunks, of states, and of the scores with x, as a scan's rows state them.
inline Scan scan_of(const OpWork& work, const Bindings& letters) {
  const ProductWork& scores = work.products[0];
  const ProductWork& outputs = work.products[2];
  return {.tokens = scores.rows.evaluate(letters),
          .sequence = letters[Symbol::sequence],
          .heads = outputs.batch.evaluate(letters),
          .head_size = outputs.outer[0].evaluate(letters),
          .groups = scores.batch.evaluate(letters),
          .state_size = scores.inner.evaluate(letters),
          .chunk_size = scores.outer[0].evaluate(letters)};
}

}  // namespace headroom
