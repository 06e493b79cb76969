// Inputs that need no storage on the host: element i of a matrix is a hash of i, so that any element of a result can be
// computed again from nothing. Values lie evenly in [-1, 1), as random data costs power where zeros would not.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "resources.cuh"

namespace headroom::harness {

__host__ __device__ inline float element(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t x = index * 0x9E3779B97F4A7C15ULL + seed * 0xD1B54A32D192ED03ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return static_cast<float>(static_cast<std::int32_t>(x >> 40) - (1 << 23)) / static_cast<float>(1 << 23);
}

// As the device stores it.
__host__ __device__ inline float stored_element(std::uint64_t index, std::uint64_t seed) {
  return __bfloat162float(__float2bfloat16(element(index, seed)));
}

void fill(const Buffer& buffer, std::uint64_t seed, cudaStream_t stream);  // with bf16

}  // namespace headroom::harness
