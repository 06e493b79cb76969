// Memory as a training framework's allocator hands it out: in stream order, from a pool whose use the driver counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "resources.cuh"

namespace headroom::harness {

class Pool {
 public:
  // Of the current device; its memory is used in one stream.
  explicit Pool(cudaStream_t stream);

  // Takes so much from the driver now, for tensors to come. Growing later may wait for all devices of the process,
  // while they run a collective that waits for this one. Waits for the stream.
  void reserve(std::size_t bytes);

  // What tensors hold of the pool, as the driver counts it: now, and the most since reset_peak(). Waits for the stream.
  [[nodiscard]] std::size_t used_bytes() const;
  [[nodiscard]] std::size_t peak_bytes() const;
  void reset_peak();

  // While set, tensors begin as NaN, so that what a kernel leaves out is found, and a tensor's memory is back in the
  // pool before the next is made, so that the peak is that of the tensors alone.
  void set_careful(bool careful) { careful_ = careful; }

 private:
  friend class Tensor;
  Owner<cudaMemPool_t, cudaMemPoolDestroy> pool_;
  cudaStream_t stream_;
  bool careful_ = false;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(Pool& pool, std::int64_t bytes);
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    Tensor taken(std::move(other));
    swap(taken);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  // Where a parameter names the type.
  template <class T>
  operator T*() const {
    return as<T>();
  }
  void free() { *this = Tensor(); }

 private:
  void swap(Tensor& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(memory_, other.memory_);
  }
  Pool* pool_ = nullptr;
  void* memory_ = nullptr;
};

}  // namespace headroom::harness
