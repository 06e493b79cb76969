#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "filling.cuh"
#include "half.cuh"
#include "matmul.cuh"
#include "products.cuh"

namespace headroom::harness {
namespace {

constexpr std::uint64_t seed_of_a = 1;
constexpr std::uint64_t seed_of_b = 2;

MatmulShape shape_of(const Sample& sample, cudaDataType_t type) {
  const Gemm& size = sample.product;
  const Layout layout = layout_of(sample);
  const bool a_transposed = layout == Layout::weight_gradient;
  const bool b_transposed = layout == Layout::forward;
  return {.size = size,
          .type = type,
          .a_transposed = a_transposed,
          .b_transposed = b_transposed,
          .a = {a_transposed ? size.rows : size.inner, size.rows * size.inner},
          .b = {b_transposed ? size.inner : size.columns, size.inner * size.columns},
          .c = {size.columns, size.rows * size.columns}};
}

template <class T>
class Product {
 public:
  Product(const Sample& sample, const Library& library, cudaStream_t stream)
      : sample_(sample),
        shape_(shape_of(sample, HalfTraits<T>::cuda)),
        matmul_(shape_, library),
        a_(static_cast<std::size_t>(shape_.size.batch * shape_.a.batch) * sizeof(T)),
        b_(static_cast<std::size_t>(shape_.size.batch * shape_.b.batch) * sizeof(T)),
        c_(static_cast<std::size_t>(shape_.size.batch * shape_.c.batch) *
           (adds_to_fp32() ? sizeof(float) : sizeof(T))) {
    fill(a_.template as<T>(), shape_.size.batch * shape_.a.batch, seed_of_a, stream);
    fill(b_.template as<T>(), shape_.size.batch * shape_.b.batch, seed_of_b, stream);
  }

  void run(cudaStream_t stream) const {
    matmul_.run(a_.template as<void>(), b_.template as<void>(), c_.template as<void>(), stream);
  }

  // Poisons the result (what adds begins at zero), runs once, and compares elements from all over it with sums made on
  // the host. Throws where one is off.
  void verify(cudaStream_t stream) const {
    if (adds_to_fp32()) {
      check(cudaMemsetAsync(c_.template as<void>(), 0, c_.bytes(), stream));
    } else {
      c_.poison(stream);
    }
    run(stream);
    const std::int64_t elements = shape_.size.batch * shape_.c.batch;
    constexpr std::int64_t probes = 61;
    for (std::int64_t i = 0; i < probes; ++i) verify_element(i * (elements - 1) / (probes - 1), stream);
  }

 private:
  [[nodiscard]] bool adds_to_fp32() const { return shape_.size.result_bytes == 8; }

  void verify_element(std::int64_t place, cudaStream_t stream) const {
    const Gemm& size = shape_.size;
    const std::int64_t matrix = place / (size.rows * size.columns);
    const std::int64_t row = place / size.columns % size.rows;
    const std::int64_t column = place % size.columns;
    double expected = 0;
    for (std::int64_t i = 0; i < size.inner; ++i) {
      const std::int64_t a = shape_.a_transposed ? i * shape_.a.row + row : row * shape_.a.row + i;
      const std::int64_t b = shape_.b_transposed ? column * shape_.b.row + i : i * shape_.b.row + column;
      expected += filled<T>(static_cast<std::uint64_t>(matrix * shape_.a.batch + a), seed_of_a) *
                  filled<T>(static_cast<std::uint64_t>(matrix * shape_.b.batch + b), seed_of_b);
    }
    const auto at = static_cast<std::uint64_t>(place);
    const double found = adds_to_fp32() ? read_one(c_.template as<float>(), at, stream)
                                        : read_one(c_.template as<T>(), at, stream);
    // Two units of the last place, and sums in another order; NaN is never within it.
    const double allowed =
        2 * HalfTraits<T>::epsilon * std::abs(expected) + 1e-3 * std::sqrt(static_cast<double>(size.inner));
    if (!(std::abs(found - expected) <= allowed)) {
      throw SampleError("a " + sample_.label + " product of " + std::to_string(size.rows) + " x " +
                        std::to_string(size.columns) + " x " + std::to_string(size.inner) + " is wrong: " +
                        std::to_string(found) + " where " + std::to_string(expected) + " was expected");
    }
  }

  const Sample& sample_;
  MatmulShape shape_;
  Matmul matmul_;
  Buffer a_, b_, c_;
};

template <class T>
void measure(const Sample& sample, const Library& library, cudaStream_t stream, const Session& session) {
  const Product<T> product(sample, library, stream);
  product.verify(stream);
  const auto timing = time_graph(
      stream, [&](cudaStream_t on) { product.run(on); }, sample.load, session.nvml);
  if (timing) session.add(sample, *timing);
}

}  // namespace

void measure_products(const std::vector<Sample>& samples, const Session& session) {
  const Stream stream = make_stream();
  const Library library = make_library();
  for (const Sample& sample : samples) {
    if (interrupted()) return;
    try {
      with_type(sample.half_format,
                [&](auto type) { measure<decltype(type)>(sample, library, stream.get(), session); });
    } catch (const SampleError& error) {
      session.wrong(sample, error.what());
    }
  }
}

}  // namespace headroom::harness
