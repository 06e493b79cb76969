#include <limits>

#include "pool.cuh"

namespace headroom::harness {
namespace {

std::size_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  std::uint64_t bytes = 0;
  check(cudaMemPoolGetAttribute(pool, which, &bytes));
  return bytes;
}

}  // namespace

Pool::Pool(cudaStream_t stream) : stream_(stream) {
  int device = 0;
  check(cudaGetDevice(&device));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location = {cudaMemLocationTypeDevice, device};
  cudaMemPool_t made = nullptr;
  check(cudaMemPoolCreate(&made, &properties));
  pool_.reset(made);
  // Memory stays with the pool, as a framework's allocator keeps it.
  std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &threshold));
}

void Pool::reserve(std::size_t bytes) {
  Tensor(*this, static_cast<std::int64_t>(bytes)).free();
  check(cudaStreamSynchronize(stream_));
}

std::size_t Pool::used_bytes() const {
  check(cudaStreamSynchronize(stream_));
  return attribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent);
}

std::size_t Pool::peak_bytes() const {
  check(cudaStreamSynchronize(stream_));
  return attribute(pool_.get(), cudaMemPoolAttrUsedMemHigh);
}

void Pool::reset_peak() {
  check(cudaStreamSynchronize(stream_));
  std::uint64_t zero = 0;  // which resets it to what is used now
  check(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrUsedMemHigh, &zero));
}

Tensor::Tensor(Pool& pool, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaMallocFromPoolAsync(&memory_, size, pool.pool_.get(), pool.stream_));
  pool_ = &pool;
  if (pool.careful_) check(cudaMemsetAsync(memory_, 0xFF, size, pool.stream_));
}

Tensor::~Tensor() {
  if (memory_ == nullptr) return;
  static_cast<void>(cudaFreeAsync(memory_, pool_->stream_));
  if (pool_->careful_) static_cast<void>(cudaStreamSynchronize(pool_->stream_));
}

}  // namespace headroom::harness
