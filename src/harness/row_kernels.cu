#include <algorithm>

#include "elements.hpp"
#include "half.cuh"
#include "launch.cuh"
#include "layer_kernels.cuh"

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

template <class T>
__global__ void layer_norm_gradient_kernel(const T* dy, const T* x, const float* statistics, const T* scale,
                                           const T* residual, T* dx, std::uint64_t columns) {
  const std::uint64_t row = blockIdx.x;
  const std::uint64_t fours = columns / 4;
  const float mean = statistics[2 * row];
  const float reciprocal = statistics[2 * row + 1];
  float sum = 0;
  float with_unit = 0;
  for (std::uint64_t i = threadIdx.x; i < fours; i += threads) {
    const float4 unit = (load_four(x, row * fours + i) + -mean) * reciprocal;
    const float4 gradient = load_four(dy, row * fours + i) * load_four(scale, i);
    sum += total(gradient);
    with_unit += total(gradient * unit);
  }
  sum = block_sum(sum) / static_cast<float>(columns);
  with_unit = block_sum(with_unit) / static_cast<float>(columns);
  for (std::uint64_t i = threadIdx.x; i < fours; i += threads) {
    const float4 unit = (load_four(x, row * fours + i) + -mean) * reciprocal;
    const float4 gradient = load_four(dy, row * fours + i) * load_four(scale, i);
    const float4 through = (gradient + -sum + unit * -with_unit) * reciprocal;
    store_four(dx, row * fours + i, load_four(residual, row * fours + i) + through);
  }
}

// A warp's lanes take four columns each, its block's warps and the blocks in y take turns with the rows.
constexpr int block_columns = 32 * 4;
template <int N>
struct Sums {
  float4 value[N];
};
template <int N, class F>
__device__ void add_over_rows(F value, float* const (&sums)[N], std::uint64_t rows, std::uint64_t columns) {
  __shared__ float4 parts[warps][32][N];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint64_t four = std::uint64_t{blockIdx.x} * 32 + lane;
  Sums<N> mine{};
  if (four < columns / 4) {
    for (std::uint64_t row = std::uint64_t{blockIdx.y} * warps + warp; row < rows; row += warps * gridDim.y) {
      const Sums<N> more = value(row, four);
      for (int n = 0; n < N; ++n) mine.value[n] = mine.value[n] + more.value[n];
    }
  }
  for (int n = 0; n < N; ++n) parts[warp][lane][n] = mine.value[n];
  __syncthreads();
  if (warp != 0 || four >= columns / 4) return;
  for (int n = 0; n < N; ++n) {
    float4 sum = parts[0][lane][n];
    for (int i = 1; i < warps; ++i) sum = sum + parts[i][lane][n];
    atomicAdd(&sums[n][4 * four], sum.x);
    atomicAdd(&sums[n][4 * four + 1], sum.y);
    atomicAdd(&sums[n][4 * four + 2], sum.z);
    atomicAdd(&sums[n][4 * four + 3], sum.w);
  }
}
dim3 column_grid(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t most_turns = 64;
  return grid((columns + block_columns - 1) / block_columns,
              std::min((rows + warps - 1) / warps, most_turns));
}

template <class T>
__global__ void column_sums_kernel(const T* x, float* sums, std::uint64_t rows, std::uint64_t columns) {
  float* const all[1] = {sums};
  add_over_rows<1>([&](std::uint64_t row,
                       std::uint64_t four) { return Sums<1>{{load_four(x, row * (columns / 4) + four)}}; },
                   all, rows, columns);
}

template <class T>
__global__ void parameter_gradients_kernel(const T* dy, const T* x, const float* statistics, float* dscale,
                                           float* dshift, std::uint64_t rows, std::uint64_t columns) {
  float* const all[2] = {dscale, dshift};
  add_over_rows<2>(
      [&](std::uint64_t row, std::uint64_t four) {
        const float4 gradient = load_four(dy, row * (columns / 4) + four);
        const float4 off = load_four(x, row * (columns / 4) + four) + -statistics[2 * row];
        return Sums<2>{{gradient * (off * statistics[2 * row + 1]), gradient}};
      },
      all, rows, columns);
}

// A row of softmax is in registers: read once, written once. Which columns a row sees ends within a thread's four.
constexpr int held = longest_softmax / 4 / threads;

__device__ float4 first_of(float4 x, std::int64_t seen, float other) {
  return {seen > 0 ? x.x : other, seen > 1 ? x.y : other, seen > 2 ? x.z : other, seen > 3 ? x.w : other};
}

template <class T>
__global__ void softmax_kernel(const T* x, T* y, std::uint64_t columns, bool causal) {
  const std::uint64_t row = blockIdx.x;
  const auto seen = static_cast<std::int64_t>(causal ? row % columns + 1 : columns);
  float4 value[held];
  float most = -INFINITY;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const std::int64_t first = 4 * (std::int64_t{i} * threads + threadIdx.x);
    value[i] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (first < seen) value[i] = first_of(load_four(x, (row * columns + first) / 4), seen - first, -INFINITY);
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
    if (first < static_cast<std::int64_t>(columns))
      store_four(y, (row * columns + first) / 4, value[i] * part);
  }
}

template <class T>
__global__ void softmax_gradient_kernel(const T* dy, const T* y, T* dx, std::uint64_t columns) {
  const std::uint64_t row = blockIdx.x;
  const auto seen = static_cast<std::int64_t>(row % columns + 1);
  float4 gradient[held];
  float4 weight[held];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const std::int64_t first = 4 * (std::int64_t{i} * threads + threadIdx.x);
    gradient[i] = weight[i] = {0, 0, 0, 0};
    if (first < seen) {
      gradient[i] = first_of(load_four(dy, (row * columns + first) / 4), seen - first, 0);
      weight[i] = first_of(load_four(y, (row * columns + first) / 4), seen - first, 0);
    }
    sum += total(gradient[i] * weight[i]);
  }
  sum = block_sum(sum);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const std::int64_t first = 4 * (std::int64_t{i} * threads + threadIdx.x);
    if (first < static_cast<std::int64_t>(columns))
      store_four(dx, (row * columns + first) / 4, weight[i] * (gradient[i] + -sum));
  }
}

}  // namespace

template <class T>
void layer_norm(const T* x, const T* scale, const T* shift, T* y, float* statistics, std::int64_t rows,
                std::int64_t columns, cudaStream_t stream) {
  launch(layer_norm_kernel<T>, grid(rows), stream, x, scale, shift, y, statistics, columns);
}
template <class T>
void layer_norm_gradient(const T* dy, const T* x, const float* statistics, const T* scale, const T* residual,
                         T* dx, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  launch(layer_norm_gradient_kernel<T>, grid(rows), stream, dy, x, statistics, scale, residual, dx, columns);
}
template <class T>
void layer_norm_parameter_gradients(const T* dy, const T* x, const float* statistics, float* dscale,
                                    float* dshift, std::int64_t rows, std::int64_t columns,
                                    cudaStream_t stream) {
  launch(parameter_gradients_kernel<T>, column_grid(rows, columns), stream, dy, x, statistics, dscale, dshift,
         rows, columns);
}
template <class T>
void column_sums(const T* x, float* sums, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  launch(column_sums_kernel<T>, column_grid(rows, columns), stream, x, sums, rows, columns);
}
template <class T>
void softmax(const T* x, T* y, std::int64_t rows, std::int64_t columns, bool causal, cudaStream_t stream) {
  launch(softmax_kernel<T>, grid(rows), stream, x, y, columns, causal);
}
template <class T>
void causal_softmax_gradient(const T* dy, const T* y, T* dx, std::int64_t rows, std::int64_t columns,
                             cudaStream_t stream) {
  launch(softmax_gradient_kernel<T>, grid(rows), stream, dy, y, dx, columns);
}

#define HEADROOM_ROWS(T)                                                                                    \
  template void layer_norm(const T*, const T*, const T*, T*, float*, std::int64_t, std::int64_t,            \
                           cudaStream_t);                                                                   \
  template void layer_norm_gradient(const T*, const T*, const float*, const T*, const T*, T*, std::int64_t, \
                                    std::int64_t, cudaStream_t);                                            \
  template void layer_norm_parameter_gradients(const T*, const T*, const float*, float*, float*,            \
                                               std::int64_t, std::int64_t, cudaStream_t);                   \
  template void column_sums(const T*, float*, std::int64_t, std::int64_t, cudaStream_t);                    \
  template void softmax(const T*, T*, std::int64_t, std::int64_t, bool, cudaStream_t);                      \
  template void causal_softmax_gradient(const T*, const T*, T*, std::int64_t, std::int64_t, cudaStream_t);
HEADROOM_ROWS(__half)
HEADROOM_ROWS(__nv_bfloat16)
#undef HEADROOM_ROWS

}  // namespace headroom::harness
