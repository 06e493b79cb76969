// fp16 and bf16 behind one name: their types in CUDA, cuBLASLt and NCCL, and four elements at a time as floats.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>
#include <nccl.h>

#include "headroom/calibrate/sample.hpp"

namespace headroom::harness {

template <class T>
struct HalfTraits;

template <>
struct HalfTraits<__half> {
  static constexpr HalfFormat format = HalfFormat::fp16;
  static constexpr cudaDataType_t cuda = CUDA_R_16F;
  static constexpr ncclDataType_t nccl = ncclFloat16;
  static constexpr double epsilon = 0x1p-11;  // half a unit of the last place, relative
  using Pair = __half2;
  static __host__ __device__ float2 floats(Pair x) { return __half22float2(x); }
  static __host__ __device__ Pair pair(float x, float y) { return __floats2half2_rn(x, y); }
  static __host__ __device__ float to_float(__half x) { return __half2float(x); }
  static __host__ __device__ __half of_float(float x) { return __float2half(x); }
};

template <>
struct HalfTraits<__nv_bfloat16> {
  static constexpr HalfFormat format = HalfFormat::bf16;
  static constexpr cudaDataType_t cuda = CUDA_R_16BF;
  static constexpr ncclDataType_t nccl = ncclBfloat16;
  static constexpr double epsilon = 0x1p-8;
  using Pair = __nv_bfloat162;
  static __host__ __device__ float2 floats(Pair x) { return __bfloat1622float2(x); }
  static __host__ __device__ Pair pair(float x, float y) { return __floats2bfloat162_rn(x, y); }
  static __host__ __device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __host__ __device__ __nv_bfloat16 of_float(float x) { return __float2bfloat16(x); }
};

// Calls f with an empty value of the type that a format names.
template <class F>
auto with_type(HalfFormat format, F f) {
  return format == HalfFormat::fp16 ? f(__half{}) : f(__nv_bfloat16{});
}

// Elements 4 i to 4 i + 3, in one access of eight bytes.
template <class T>
__device__ float4 load_four(const T* x, std::uint64_t i) {
  struct alignas(8) Four {
    typename HalfTraits<T>::Pair low, high;
  };
  const Four four = reinterpret_cast<const Four*>(x)[i];
  const float2 low = HalfTraits<T>::floats(four.low);
  const float2 high = HalfTraits<T>::floats(four.high);
  return {low.x, low.y, high.x, high.y};
}
template <class T>
__device__ void store_four(T* y, std::uint64_t i, float4 value) {
  struct alignas(8) Four {
    typename HalfTraits<T>::Pair low, high;
  };
  reinterpret_cast<Four*>(y)[i] = {HalfTraits<T>::pair(value.x, value.y),
                                   HalfTraits<T>::pair(value.z, value.w)};
}

// An element as the device stores it.
template <class T>
__host__ __device__ float stored(float value) {
  return HalfTraits<T>::to_float(HalfTraits<T>::of_float(value));
}

}  // namespace headroom::harness
