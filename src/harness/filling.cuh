// Fills half-precision buffers with elements.hpp's numbers, and reads them back.
#pragma once

#include <cstdint>
#include <vector>

#include "elements.hpp"
#include "half.cuh"
#include "resources.cuh"

namespace headroom::harness {

// scale * element(i, seed), rounded.
template <class T>
void fill(T* out, std::int64_t count, std::uint64_t seed, cudaStream_t stream, float scale = 1);

// As fill() stores it.
template <class T>
double filled(std::uint64_t index, std::uint64_t seed) {
  return stored<T>(element(index, seed));
}

// Waits for the stream.
template <class T>
double read_one(const T* values, std::uint64_t place, cudaStream_t stream) {
  T value{};
  check(cudaStreamSynchronize(stream));
  check(cudaMemcpy(&value, values + place, sizeof value, cudaMemcpyDeviceToHost));
  if constexpr (sizeof(T) == sizeof(float)) {
    return value;
  } else {
    return HalfTraits<T>::to_float(value);
  }
}

}  // namespace headroom::harness
