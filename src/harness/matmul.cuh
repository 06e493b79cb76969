// One matrix product by cuBLASLt, whose algorithm is chosen once: C = A B (+ C), batched or not.
#pragma once

#include "headroom/time/gemm.hpp"
#include "resources.cuh"

namespace headroom::harness {

// How a matrix lies in memory, row by row: elements from row to row and from one of a batch to the next.
struct Strides {
  std::int64_t row;
  std::int64_t batch = 0;
};

struct MatmulShape {
  Gemm size;  // C[rows x columns] = A[rows x inner] B[inner x columns]; 8 result bytes: adds to fp32
  cudaDataType_t type;        // of A and B, and of C unless it is fp32
  bool a_transposed = false;  // stored as [inner x rows]
  bool b_transposed = false;  // stored as [columns x inner]
  Strides a, b, c;
  std::uint32_t alignment = 256;  // bytes that all addresses are multiples of
};

// A handle of cuBLASLt and the memory that its products may use, one after the other in one stream.
struct Library {
  LtHandle handle;
  Buffer workspace;
};
Library make_library();

class Matmul {
 public:
  // `library` must outlive it.
  Matmul(const MatmulShape& shape, const Library& library);
  void run(const void* a, const void* b, void* c, cudaStream_t stream) const;

 private:
  void choose_algorithm();

  MatmulShape shape_;
  const Library* library_;
  LtDescription description_;
  LtLayout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace headroom::harness
