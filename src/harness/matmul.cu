#include <string>

#include "matmul.cuh"

namespace headroom::harness {
namespace {

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

bool adds_to_fp32(const MatmulShape& shape) { return shape.size.result_bytes == 8; }

// cuBLAS counts by columns: what lies row by row as [rows x columns] is a matrix of `columns` rows to it.
LtLayout layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, const Strides& strides,
                std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(columns),
                                   static_cast<std::uint64_t>(rows), strides.row));
  LtLayout layout(made);
  const auto count = static_cast<std::int32_t>(batch);
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &strides.batch,
                                         sizeof strides.batch));
  return layout;
}

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value));
}
template <class Value>
void set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const Value& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value));
}

}  // namespace

// Our C is C' = B' A' to cuBLAS.
Matmul::Matmul(const MatmulShape& shape, const Library& library) : shape_(shape), library_(&library) {
  cublasLtMatmulDesc_t description = nullptr;
  check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  description_.reset(description);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, shape.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, shape.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  const Gemm& size = shape.size;
  first_ = shape.b_transposed ? layout(shape.type, size.columns, size.inner, shape.b, size.batch)
                              : layout(shape.type, size.inner, size.columns, shape.b, size.batch);
  second_ = shape.a_transposed ? layout(shape.type, size.inner, size.rows, shape.a, size.batch)
                               : layout(shape.type, size.rows, size.inner, shape.a, size.batch);
  const cudaDataType_t result = adds_to_fp32(shape) ? CUDA_R_32F : shape.type;
  result_ = layout(result, size.rows, size.columns, shape.c, size.batch);
  choose_algorithm();
}

void Matmul::choose_algorithm() {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made));
  const LtPreference preference(made);
  set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Partial sums of a split inner extent are added up in fp32: not in half precision, which would be faster and wrong.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(made, attribute, shape_.alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library_->handle.get(), description_.get(), first_.get(), second_.get(),
                                     result_.get(), result_.get(), made, 1, &best, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || found == 0) {
    const Gemm& size = shape_.size;
    throw SampleError("cuBLASLt has no algorithm for a product of " + std::to_string(size.rows) + " x " +
                      std::to_string(size.columns) + " x " + std::to_string(size.inner));
  }
  check(status);
  algorithm_ = best.algo;
}

void Matmul::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  constexpr float alpha = 1;
  const float beta = adds_to_fp32(shape_) ? 1 : 0;
  check(cublasLtMatmul(library_->handle.get(), description_.get(), &alpha, b, first_.get(), a,
                       second_.get(), &beta, c, result_.get(), c, result_.get(), &algorithm_,
                       library_->workspace.as<void>(), library_->workspace.bytes(), stream));
}

Library make_library() {
  cublasLtHandle_t made = nullptr;
  check(cublasLtCreate(&made));
  return {LtHandle(made), Buffer(workspace_bytes)};
}

}  // namespace headroom::harness
