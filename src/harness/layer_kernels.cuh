// Kernels of a transformer layer that are no matrix products, forward and backward. All sizes are multiples of 4, and
// sums over rows and columns are in fp32. `mask` holds a byte an element, 1 where dropout keeps it.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace headroom::harness {

inline constexpr std::int64_t longest_softmax = 4096;  // columns, which a block holds in registers

// `statistics`: two of each row, its mean and reciprocal deviation.
template <class T>
void layer_norm(const T* x, const T* scale, const T* shift, T* y, float* statistics, std::int64_t rows,
                std::int64_t columns, cudaStream_t stream);
// dx = residual + the gradient through the norm.
template <class T>
void layer_norm_gradient(const T* dy, const T* x, const float* statistics, const T* scale, const T* residual,
                         T* dx, std::int64_t rows, std::int64_t columns, cudaStream_t stream);
// Adds to dscale and dshift.
template <class T>
void layer_norm_parameter_gradients(const T* dy, const T* x, const float* statistics, float* dscale,
                                    float* dshift, std::int64_t rows, std::int64_t columns,
                                    cudaStream_t stream);
// Adds the sum of each column to `sums`: the gradient of a bias.
template <class T>
void column_sums(const T* x, float* sums, std::int64_t rows, std::int64_t columns, cudaStream_t stream);

// With `causal`, row r sees its first r % columns + 1 columns, and has 0 in the others.
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t columns, bool causal, cudaStream_t stream);
template <class T>
void causal_softmax_gradient(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t columns,
                             cudaStream_t stream);

template <class T>
void dropout(const T* x, T* y, std::uint8_t* mask, std::int64_t count, std::uint64_t seed,
             cudaStream_t stream);
template <class T>
void dropout_gradient(const T* dy, const std::uint8_t* mask, T* dx, std::int64_t count, cudaStream_t stream);
// y = residual + dropout(x + bias), of rows of `columns`.
template <class T>
void bias_dropout_add(const T* x, const T* bias, const T* residual, T* y, std::uint8_t* mask,
                      std::int64_t count, std::int64_t columns, std::uint64_t seed, cudaStream_t stream);
template <class T>
void residual_add(const T* x, const T* z, T* y, std::int64_t count, cudaStream_t stream);
template <class T>
void gelu(const T* x, T* y, std::int64_t count, cudaStream_t stream);
template <class T>
void gelu_gradient(const T* dy, const T* x, T* dx, std::int64_t count, cudaStream_t stream);

}  // namespace headroom::harness
