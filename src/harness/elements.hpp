// Inputs and dropout masks that need no storage on the host: element i is a hash of i and a seed, the same on host and
// device, so that any element of a result can be computed again from nothing.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define HEADROOM_HOST_DEVICE __host__ __device__
#else
#define HEADROOM_HOST_DEVICE
#endif

namespace headroom::harness {

// Evenly in [-1, 1), as random data costs power where zeros would not [Steele, Lea and Flood 2014, as in SplitMix64].
HEADROOM_HOST_DEVICE inline float element(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t x = index * 0x9E3779B97F4A7C15ULL + seed * 0xD1B54A32D192ED03ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  x ^= x >> 31U;
  return static_cast<float>(static_cast<std::int32_t>(x >> 40U) - (1 << 23)) / static_cast<float>(1 << 23);
}

// Dropout keeps nine elements of ten, and divides them by that part.
inline constexpr float kept_part = 0.9F;
HEADROOM_HOST_DEVICE inline bool keeps(std::uint64_t index, std::uint64_t seed) {
  return element(index, seed) < 2 * kept_part - 1;
}

inline constexpr float norm_epsilon = 1e-5F;

// Of GeLU's approximation by tanh, 0.5 x (1 + tanh(c (x + d x^3))) [Hendrycks and Gimpel 2016].
inline constexpr double gelu_c = 0.7978845608028654;  // sqrt(2 / pi)
inline constexpr double gelu_d = 0.044715;

}  // namespace headroom::harness
