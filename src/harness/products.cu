#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "filling.cuh"
#include "products.cuh"
#include "resources.cuh"

namespace headroom::harness {
namespace {

// C[m x n] = A B, row by row in memory. What differs is how A and B lie there:
//   forward          A[m x k], B as W[n x k]       Y = X W'
//   data_gradient    A[m x k], B[k x n]            dX = dY W
//   weight_gradient  A as dY[k x m], B[k x n]      dW += dY' X, into fp32
enum class Layout { forward, data_gradient, weight_gradient };

struct Shape {
  std::int64_t batch, m, n, k;
  Layout layout;
  bool sustained;
};

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::forward: return "forward";
    case Layout::data_gradient: return "data gradient";
    case Layout::weight_gradient: break;
  }
  return "weight gradient";
}
bool adds_to_fp32(const Shape& shape) { return shape.layout == Layout::weight_gradient; }

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
constexpr double seconds_of_load = 2;

// Sides apart by less than a factor of two in all three directions, with some that are no powers of two, as the widths
// of a layer split over 1 to 8 ranks are.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const std::int64_t m : {128, 512, 1024, 2048, 4096, 8192}) {
    for (const std::int64_t n : {128, 768, 1536, 3072, 6144, 12288}) {
      for (const std::int64_t k : {128, 768, 1536, 3072, 6144, 12288}) {
        all.push_back({1, m, n, k, Layout::forward, false});
      }
    }
  }
  // Of layers of width h, split over t ranks: QKV, projection and both of the MLP, with their gradients.
  for (const std::int64_t h : {4096, 6144, 12288}) {
    for (const std::int64_t t : {1, 8}) {
      constexpr std::int64_t tokens = 4096;
      const std::array<std::array<std::int64_t, 2>, 4> weights{
          {{3 * h / t, h}, {h, h / t}, {4 * h / t, h}, {h, 4 * h / t}}};
      for (const auto& [out, in] : weights) {
        for (const bool sustained : {false, true}) {
          if (sustained) all.push_back({1, tokens, out, in, Layout::forward, true});
          all.push_back({1, tokens, in, out, Layout::data_gradient, sustained});
          all.push_back({1, out, in, tokens, Layout::weight_gradient, sustained});
        }
      }
    }
  }
  // Scores and context of attention: heads of width 128 and 64 over sequences of 1024 to 4096.
  for (const std::int64_t batch : {8, 64}) {
    for (const std::int64_t width : {64, 128}) {
      for (const std::int64_t sequence : {1024, 2048, 4096}) {
        all.push_back({batch, sequence, sequence, width, Layout::forward, false});
        all.push_back({batch, sequence, width, sequence, Layout::data_gradient, false});
      }
    }
  }
  return all;
}

LtLayout make_layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows));
  LtLayout layout(made);
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t stride = rows * columns;
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  check(cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride));
  return layout;
}

// cuBLAS counts by columns, where our C is C' = B' A'.
class Product {
 public:
  Product(const Shape& shape, cublasLtHandle_t handle)
      : shape_(shape),
        handle_(handle),
        a_(size(shape.m * shape.k)),
        b_(size(shape.k * shape.n)),
        c_(size(shape.m * shape.n) * (adds_to_fp32(shape) ? 2 : 1)),
        workspace_(workspace_bytes) {
    cublasLtMatmulDesc_t description = nullptr;
    check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    description_.reset(description);
    const cublasOperation_t first = shape.layout == Layout::forward ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = shape.layout == Layout::weight_gradient ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first));
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second));
    const bool whole_b = first == CUBLAS_OP_T;
    const bool whole_a = second == CUBLAS_OP_N;
    first_ = make_layout(CUDA_R_16BF, whole_b ? shape.k : shape.n, whole_b ? shape.n : shape.k, shape.batch);
    second_ = make_layout(CUDA_R_16BF, whole_a ? shape.k : shape.m, whole_a ? shape.m : shape.k, shape.batch);
    result_ = make_layout(adds_to_fp32(shape) ? CUDA_R_32F : CUDA_R_16BF, shape.n, shape.m, shape.batch);
    choose_algorithm();
  }

  void run(cudaStream_t stream) const {
    const float alpha = 1;
    const float beta = adds_to_fp32(shape_) ? 1 : 0;
    check(cublasLtMatmul(handle_, description_.get(), &alpha, b_.as<void>(), first_.get(), a_.as<void>(),
                         second_.get(), &beta, c_.as<void>(), result_.get(), c_.as<void>(), result_.get(),
                         &algorithm_, workspace_.as<void>(), workspace_.bytes(), stream));
  }

  // Poisons the result (what adds begins at zero), runs once, and compares elements from all over it with sums made on
  // the host. Throws where one is off.
  void verify(cudaStream_t stream) const {
    fill(a_, 1, stream);
    fill(b_, 2, stream);
    if (adds_to_fp32(shape_)) {
      check(cudaMemsetAsync(c_.as<void>(), 0, c_.bytes(), stream));
    } else {
      c_.poison(stream);
    }
    run(stream);
    check(cudaStreamSynchronize(stream));
    const std::int64_t elements = shape_.batch * shape_.m * shape_.n;
    constexpr std::int64_t probes = 61;
    for (std::int64_t i = 0; i < probes; ++i) verify_element(i * (elements - 1) / (probes - 1));
  }

 private:
  [[nodiscard]] std::size_t size(std::int64_t elements) const {
    return static_cast<std::size_t>(2 * shape_.batch * elements);
  }

  void choose_algorithm() {
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLtMatmulPreferenceCreate(&made));
    const LtPreference preference(made);
    check(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                               &workspace_bytes, sizeof workspace_bytes));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(),
                                         result_.get(), result_.get(), made, 1, &best, &found));
    if (found == 0) check(CUBLAS_STATUS_NOT_SUPPORTED);
    algorithm_ = best.algo;
  }

  void verify_element(std::int64_t place) const {
    const std::int64_t matrix = place / (shape_.m * shape_.n);
    const std::int64_t row = place / shape_.n % shape_.m;
    const std::int64_t column = place % shape_.n;
    double expected = 0;
    for (std::int64_t i = 0; i < shape_.k; ++i) {
      const std::int64_t a =
          shape_.layout == Layout::weight_gradient ? i * shape_.m + row : row * shape_.k + i;
      const std::int64_t b = shape_.layout == Layout::forward ? column * shape_.k + i : i * shape_.n + column;
      expected += double(stored_element(static_cast<std::uint64_t>(matrix * shape_.m * shape_.k + a), 1)) *
                  double(stored_element(static_cast<std::uint64_t>(matrix * shape_.k * shape_.n + b), 2));
    }
    float found = 0;
    if (adds_to_fp32(shape_)) {
      check(cudaMemcpy(&found, c_.as<float>() + place, sizeof found, cudaMemcpyDeviceToHost));
    } else {
      __nv_bfloat16 half{};
      check(cudaMemcpy(&half, c_.as<__nv_bfloat16>() + place, sizeof half, cudaMemcpyDeviceToHost));
      found = __bfloat162float(half);
    }
    // Half a unit of bf16's last place, and sums in another order; NaN is never within it.
    const double allowed = std::abs(expected) / 128 + 1e-3 * std::sqrt(double(shape_.k));
    if (!(std::abs(found - expected) <= allowed)) {
      throw std::runtime_error("a " + std::string(name_of(shape_.layout)) + " product of " +
                               std::to_string(shape_.m) + " x " + std::to_string(shape_.n) + " x " +
                               std::to_string(shape_.k) + " is wrong: " + std::to_string(found) + " where " +
                               std::to_string(expected) + " was expected");
    }
  }

  Shape shape_;
  cublasLtHandle_t handle_;
  Buffer a_, b_, c_, workspace_;
  LtDescription description_;
  LtLayout first_, second_, result_;
  cublasLtMatmulAlgo_t algorithm_{};
};

std::string members_of(const Shape& shape) {
  const std::int64_t result_bytes = adds_to_fp32(shape) ? 8 : 2;
  const std::int64_t factors = shape.m * shape.k + shape.k * shape.n;
  std::ostringstream text;
  text << R"("kind": "matrix_product", "label": ")" << name_of(shape.layout) << R"(", "m": )" << shape.m
       << ", \"n\": " << shape.n << ", \"k\": " << shape.k << ", \"batch\": " << shape.batch
       << ", \"result_bytes\": " << result_bytes << R"(, "dtype": "half", "load": ")"
       << (shape.sustained ? "sustained" : "burst")
       << "\", \"bytes\": " << shape.batch * (2 * factors + result_bytes * shape.m * shape.n)
       << ", \"flops\": " << 2 * shape.batch * shape.m * shape.n * shape.k;
  return text.str();
}

}  // namespace

std::size_t product_samples() { return shapes().size(); }

void measure_products(Report& report) {
  cublasLtHandle_t made = nullptr;
  check(cublasLtCreate(&made));
  const LtHandle handle(made);
  const Stream stream = make_stream();
  for (const Shape& shape : shapes()) {
    if (interrupted()) return;
    const Product product(shape, handle.get());
    product.verify(stream.get());
    const Work run = [&](cudaStream_t on) { product.run(on); };
    report.add(members_of(shape), shape.sustained ? time_sustained(stream.get(), run, seconds_of_load)
                                                  : time_burst(stream.get(), run));
  }
}

}  // namespace headroom::harness
