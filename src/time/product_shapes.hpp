// The products of an op in numbers: the one of the forward pass and the two of the backward pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "headroom/time/op_work.hpp"

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

// Gradients of the two factors of C = A B: dA = dC B^T and dB^T = dC^T A.
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

}  // namespace headroom
