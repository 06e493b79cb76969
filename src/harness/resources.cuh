// Owners of what the libraries hand out. Destructors do not throw: a failure there has been seen by an earlier call.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "check.cuh"

namespace headroom::harness {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    static_cast<void>(Destroy(handle));
  }
};
template <class Handle, auto Destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Event = Owner<cudaEvent_t, cudaEventDestroy>;
using Graph = Owner<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owner<cudaGraphExec_t, cudaGraphExecDestroy>;
using LtHandle = Owner<cublasLtHandle_t, cublasLtDestroy>;
using LtDescription = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using LtLayout = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using LtPreference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;
using Communicator = Owner<ncclComm_t, ncclCommDestroy>;

inline Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}
inline Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event));
  return Event(event);
}

// Device memory, on the device that is current when it is made.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes));
    memory_.reset(memory);
  }
  template <class T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_.get());
  }
  // Where a parameter names the type.
  template <class T>
  operator T*() const {
    return as<T>();
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Every byte 0xFF: a NaN in half, bf16 and fp32, so that what a kernel leaves out is found.
  void poison(cudaStream_t stream) const { check(cudaMemsetAsync(memory_.get(), 0xFF, bytes_, stream)); }

 private:
  std::unique_ptr<void, Destroyer<cudaFree>> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace headroom::harness
