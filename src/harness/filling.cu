#include "filling.cuh"

namespace headroom::harness {
namespace {

__global__ void fill_kernel(__nv_bfloat16* out, std::uint64_t count, std::uint64_t seed) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = __float2bfloat16(element(i, seed));
  }
}

}  // namespace

void fill(const Buffer& buffer, std::uint64_t seed, cudaStream_t stream) {
  fill_kernel<<<1024, 256, 0, stream>>>(buffer.as<__nv_bfloat16>(), buffer.bytes() / 2, seed);
  check(cudaGetLastError());
}

}  // namespace headroom::harness
