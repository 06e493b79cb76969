#include <algorithm>

#include "elements.hpp"
#include "half.cuh"
#include "launch.cuh"
#include "streaming_kernels.cuh"

namespace headroom::harness {
namespace {

constexpr int warps = threads / 32;

// The sum or the largest of a value over the threads of a block, known to all of them.
__device__ float over_block(float value, bool largest) {
  __shared__ float parts[warps];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFU, value, step);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();  // parts may still be read for the value before
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < warps; ++i) value = largest ? fmaxf(value, parts[i]) : value + parts[i];
  return value;
}
__device__ float block_sum(float value) { return over_block(value, false); }

__device__ float total(float4 x) { return x.x + x.y + x.z + x.w; }
__device__ float4 operator+(float4 x, float4 y) { return {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w}; }
__device__ float4 operator*(float4 x, float4 y) { return {x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w}; }
__device__ float4 operator*(float4 x, float k) { return {x.x * k, x.y * k, x.z * k, x.w * k}; }
__device__ float4 operator+(float4 x, float k) { return {x.x + k, x.y + k, x.z + k, x.w + k}; }

// A block for each row. Rows are too long for registers: they are read again, from the caches.
template <class T>
__global__ void layer_norm_kernel(const T* x, const T* scale, const T* shift, T* y, float* statistics,
                                  std::uint64_t columns) {
  const std::uint64_t row = blockIdx.x;
  const std::uint64_t fours = columns / 4;
  float sum = 0;
  for (std::uint64_t i = threadIdx.x; i < fours; i += threads) sum += total(load_four(x, row * fours + i));
  const float mean = block_sum(sum) / static_cast<float>(columns);
  float squares = 0;
  for (std::uint64_t i = threadIdx.x; i < fours; i += threads) {
    const float4 off = load_four(x, row * fours + i) + -mean;
    squares += total(off * off);
  }
  const float reciprocal = rsqrtf(block_sum(squares) / static_cast<float>(columns) + norm_epsilon);
  for (std::uint64_t i = threadIdx.x; i < fours; i += threads) {
    const float4 unit = (load_four(x, row * fours + i) + -mean) * reciprocal;
    store_four(y, row * fours + i, unit * load_four(scale, i) + load_four(shift, i));
  }
  if (threadIdx.x == 0) {
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = reciprocal;
  }
}

// A row of softmax is in registers: read once, written once.
constexpr int held = longest_softmax / 4 / threads;

template <class T>
__global__ void softmax_kernel(const T* x, T* y, std::uint64_t columns) {
  const std::uint64_t row = blockIdx.x;
  const auto end = static_cast<std::int64_t>(columns);
  float4 value[held];
  float most = -INFINITY;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const std::int64_t first = 4 * (std::int64_t{i} * threads + threadIdx.x);
    value[i] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (first < end) value[i] = load_four(x, (row * columns + first) / 4);
    most = fmaxf(most, fmaxf(fmaxf(value[i].x, value[i].y), fmaxf(value[i].z, value[i].w)));
  }
  most = over_block(most, true);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    value[i] = {expf(value[i].x - most), expf(value[i].y - most), expf(value[i].z - most),
                expf(value[i].w - most)};
    sum += total(value[i]);
  }
  const float part = 1 / block_sum(sum);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const std::int64_t first = 4 * (std::int64_t{i} * threads + threadIdx.x);
    if (first < end) store_four(y, (row * columns + first) / 4, value[i] * part);
  }
}

}  // namespace

template <class T>
void layer_norm(const T* x, const T* scale, const T* shift, T* y, float* statistics, std::int64_t rows,
                std::int64_t columns, cudaStream_t stream) {
  launch(layer_norm_kernel<T>, grid(rows), stream, x, scale, shift, y, statistics, columns);
}
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  launch(softmax_kernel<T>, grid(rows), stream, x, y, columns);
}

template void layer_norm(const __nv_bfloat16*, const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, float*,
                         std::int64_t, std::int64_t, cudaStream_t);
template void softmax(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, std::int64_t, cudaStream_t);

}  // namespace headroom::harness
