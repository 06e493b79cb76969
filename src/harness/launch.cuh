// The one place where kernels are launched: blocks of `threads` threads, and a check that the launch was accepted.
#pragma once

#include <cstdint>

#include "check.cuh"

namespace headroom::harness {

inline constexpr int threads = 256;

inline dim3 grid(std::int64_t x, std::int64_t y = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 blocks, cudaStream_t stream, Arguments... arguments) {
  kernel<<<blocks, threads, 0, stream>>>(static_cast<Parameters>(arguments)...);
  check(cudaGetLastError());
}

}  // namespace headroom::harness
