// Kernels that only move memory, in bf16. All sizes are multiples of 4, and sums over rows are in fp32. `mask` holds a byte an element,
// 1 where dropout keeps it.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace headroom::harness {

inline constexpr std::int64_t longest_softmax = 4096;  // columns, which a block holds in registers

// `statistics`: two of each row, its mean and reciprocal deviation.
template <class T>
void layer_norm(const T* x, const T* scale, const T* shift, T* y, float* statistics, std::int64_t rows,
                std::int64_t columns, cudaStream_t stream);
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t columns, cudaStream_t stream);
template <class T>
void dropout(const T* x, T* y, std::uint8_t* mask, std::int64_t count, std::uint64_t seed, cudaStream_t stream);
template <class T>
void residual_add(const T* x, const T* z, T* y, std::int64_t count, cudaStream_t stream);
template <class T>
void gelu(const T* x, T* y, std::int64_t count, cudaStream_t stream);

}  // namespace headroom::harness
