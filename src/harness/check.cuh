// Every call of CUDA, cuBLASLt and NCCL goes through `check`, which throws with the call's place and the library's words.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

namespace headroom::harness {

// One sample is wrong or cannot be measured here; the others can.
class SampleError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void fail(const char* library, const char* message, const std::source_location& place) {
  throw std::runtime_error(std::string(place.file_name()) + ":" + std::to_string(place.line()) + ": " +
                           library + ": " + message);
}

inline void check(cudaError_t status, const std::source_location& place = std::source_location::current()) {
  if (status != cudaSuccess) fail("CUDA", cudaGetErrorString(status), place);
}
inline void check(cublasStatus_t status,
                  const std::source_location& place = std::source_location::current()) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("cuBLASLt", cublasLtGetStatusString(status), place);
}
inline void check(ncclResult_t status, const std::source_location& place = std::source_location::current()) {
  if (status != ncclSuccess) fail("NCCL", ncclGetErrorString(status), place);
}

}  // namespace headroom::harness
