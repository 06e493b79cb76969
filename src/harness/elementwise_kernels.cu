#include "elements.hpp"
#include "half.cuh"
#include "launch.cuh"
#include "streaming_kernels.cuh"

namespace headroom::harness {
namespace {

// A thread takes four elements at a time, of a grid that covers all of them.
template <class F>
__device__ void for_fours(std::uint64_t count, F action) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count / 4; i += step)
    action(i);
}
dim3 grid_of(std::int64_t count) { return grid((count / 4 + threads - 1) / threads); }

template <class F>
__device__ float4 mapped(float4 x, F f) {
  return {f(x.x), f(x.y), f(x.z), f(x.w)};
}
template <class F>
__device__ float4 mapped(float4 x, float4 y, F f) {
  return {f(x.x, y.x), f(x.y, y.y), f(x.z, y.z), f(x.w, y.w)};
}
struct Sum {
  __device__ float operator()(float x, float y) const { return x + y; }
};

__device__ uchar4 mask_of(std::uint64_t i, std::uint64_t seed) {
  const auto kept = [&](std::uint64_t k) { return static_cast<unsigned char>(keeps(4 * i + k, seed)); };
  return {kept(0), kept(1), kept(2), kept(3)};
}
__device__ float4 masked(float4 x, uchar4 mask) {
  const auto kept = [](float value, unsigned char keep) { return keep != 0 ? value / kept_part : 0; };
  return {kept(x.x, mask.x), kept(x.y, mask.y), kept(x.z, mask.z), kept(x.w, mask.w)};
}

__device__ float gelu_tanh(float x) {
  return tanhf(static_cast<float>(gelu_c) * (x + static_cast<float>(gelu_d) * x * x * x));
}
__device__ float gelu_value(float x) { return 0.5F * x * (1 + gelu_tanh(x)); }

template <class T>
__global__ void residual_add_kernel(const T* x, const T* z, T* y, std::uint64_t count) {
  for_fours(count,
            [&](std::uint64_t i) { store_four(y, i, mapped(load_four(x, i), load_four(z, i), Sum{})); });
}
template <class T>
__global__ void gelu_kernel(const T* x, T* y, std::uint64_t count) {
  for_fours(count, [&](std::uint64_t i) {
    store_four(y, i, mapped(load_four(x, i), [](float value) { return gelu_value(value); }));
  });
}
template <class T>
__global__ void dropout_kernel(const T* x, T* y, std::uint8_t* mask, std::uint64_t count,
                               std::uint64_t seed) {
  for_fours(count, [&](std::uint64_t i) {
    const uchar4 kept = mask_of(i, seed);
    store_four(y, i, masked(load_four(x, i), kept));
    reinterpret_cast<uchar4*>(mask)[i] = kept;
  });
}}  // namespace

template <class T>
void residual_add(const T* x, const T* z, T* y, std::int64_t count, cudaStream_t stream) {
  launch(residual_add_kernel<T>, grid_of(count), stream, x, z, y, count);
}
template <class T>
void gelu(const T* x, T* y, std::int64_t count, cudaStream_t stream) {
  launch(gelu_kernel<T>, grid_of(count), stream, x, y, count);
}
template <class T>
void dropout(const T* x, T* y, std::uint8_t* mask, std::int64_t count, std::uint64_t seed,
             cudaStream_t stream) {
  launch(dropout_kernel<T>, grid_of(count), stream, x, y, mask, count, seed);
}

template void residual_add(const __nv_bfloat16*, const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void gelu(const __nv_bfloat16*, __nv_bfloat16*, std::int64_t, cudaStream_t);
template void dropout(const __nv_bfloat16*, __nv_bfloat16*, std::uint8_t*, std::int64_t, std::uint64_t, cudaStream_t);

}  // namespace headroom::harness
