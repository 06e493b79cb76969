#include "filling.cuh"
#include "launch.cuh"

namespace headroom::harness {
namespace {

template <class T>
__global__ void fill_kernel(T* out, std::uint64_t count, std::uint64_t seed, float scale) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    out[i] = HalfTraits<T>::of_float(scale * element(i, seed));
}

}  // namespace

template <class T>
void fill(T* out, std::int64_t count, std::uint64_t seed, cudaStream_t stream, float scale) {
  launch(fill_kernel<T>, grid(1024), stream, out, static_cast<std::uint64_t>(count), seed, scale);
}
template void fill(__half*, std::int64_t, std::uint64_t, cudaStream_t, float);
template void fill(__nv_bfloat16*, std::int64_t, std::uint64_t, cudaStream_t, float);

}  // namespace headroom::harness
