#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "elements.hpp"
#include "filling.cuh"
#include "half.cuh"
#include "kernels.cuh"
#include "launch.cuh"
#include "layer_kernels.cuh"

namespace headroom::harness {
namespace {

using Half = __nv_bfloat16;

constexpr std::int64_t row = 2048;  // elements of a row of softmax and of layer norm
constexpr std::uint64_t mask_seed = 7;
constexpr std::uint64_t seed_of_x = 1;
constexpr std::uint64_t seed_of_z = 2;
constexpr std::uint64_t seed_of_scale = 3;
constexpr std::uint64_t seed_of_shift = 4;

__global__ void nothing() {}

struct Buffers {
  explicit Buffers(std::int64_t elements)
      : count(elements),
        x(size(elements)),
        z(size(elements)),
        y(size(elements)),
        mask(static_cast<std::size_t>(elements)),
        scale(size(row)),
        shift(size(row)),
        statistics(static_cast<std::size_t>(elements / row) * 2 * sizeof(float)) {}
  static std::size_t size(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(Half); }
  std::int64_t count;
  Buffer x, z, y, mask, scale, shift, statistics;
};

double input(std::uint64_t i) { return filled<Half>(i, seed_of_x); }

double expected_softmax(std::uint64_t place) {
  const std::uint64_t first = place / row * row;
  double sum = 0;
  for (std::uint64_t i = first; i < first + row; ++i) sum += std::exp(input(i));
  return std::exp(input(place)) / sum;
}
double expected_norm(std::uint64_t place) {
  const std::uint64_t first = place / row * row;
  double mean = 0;
  double variance = 0;
  for (std::uint64_t i = first; i < first + row; ++i) mean += input(i) / double(row);
  for (std::uint64_t i = first; i < first + row; ++i) variance += std::pow(input(i) - mean, 2) / double(row);
  const double unit = (input(place) - mean) / std::sqrt(variance + double(norm_epsilon));
  return unit * filled<Half>(place % row, seed_of_scale) + filled<Half>(place % row, seed_of_shift);
}

struct Kernel {
  std::string_view label;
  void (*run)(const Buffers&, cudaStream_t);
  double (*expected)(std::uint64_t place);
};

constexpr Kernel kernels[] = {
    {"residual_add",
     [](const Buffers& on, cudaStream_t stream) {
       residual_add(on.x.as<const Half>(), on.z.as<const Half>(), on.y.as<Half>(), on.count, stream);
     },
     [](std::uint64_t i) { return input(i) + filled<Half>(i, seed_of_z); }},
    {"gelu",
     [](const Buffers& on, cudaStream_t stream) {
       gelu(on.x.as<const Half>(), on.y.as<Half>(), on.count, stream);
     },
     [](std::uint64_t i) {
       const double x = input(i);
       return 0.5 * x * (1 + std::tanh(gelu_c * (x + gelu_d * x * x * x)));
     }},
    {"dropout",
     [](const Buffers& on, cudaStream_t stream) {
       dropout(on.x.as<const Half>(), on.y.as<Half>(), on.mask.as<std::uint8_t>(), on.count, mask_seed,
               stream);
     },
     [](std::uint64_t i) { return keeps(i, mask_seed) ? input(i) / double(kept_part) : 0.0; }},
    {"softmax",
     [](const Buffers& on, cudaStream_t stream) {
       softmax(on.x.as<const Half>(), on.y.as<Half>(), on.count / row, row, /*causal=*/false, stream);
     },
     expected_softmax},
    {"layer_norm",
     [](const Buffers& on, cudaStream_t stream) {
       layer_norm(on.x.as<const Half>(), on.scale.as<const Half>(), on.shift.as<const Half>(),
                  on.y.as<Half>(), on.statistics.as<float>(), on.count / row, row, stream);
     },
     expected_norm},
    {"copy",
     [](const Buffers& on, cudaStream_t stream) {
       check(
           cudaMemcpyAsync(on.y.as<void>(), on.x.as<void>(), on.y.bytes(), cudaMemcpyDeviceToDevice, stream));
     },
     input},
};

const Kernel& kernel_of(const Sample& sample) {
  for (const Kernel& kernel : kernels) {
    if (kernel.label == sample.label) return kernel;
  }
  throw std::logic_error("no kernel is called " + sample.label);
}

void verify(const Kernel& kernel, const Buffers& buffers, cudaStream_t stream) {
  buffers.y.poison(stream);
  kernel.run(buffers, stream);
  constexpr std::int64_t probes = 67;
  for (std::int64_t i = 0; i < probes; ++i) {
    const auto place = static_cast<std::uint64_t>(i * (buffers.count - 1) / (probes - 1));
    const double found = read_one(buffers.y.as<Half>(), place, stream);
    const double expected = kernel.expected(place);
    if (!(std::abs(found - expected) <= 2 * HalfTraits<Half>::epsilon * std::abs(expected) + 1e-5)) {
      throw std::runtime_error(std::string(kernel.label) + " is wrong: " + std::to_string(found) + " where " +
                               std::to_string(expected) + " was expected");
    }
  }
}

// Elements that a sample's bytes are moved for.
std::int64_t elements_of(const Sample& sample) {
  return static_cast<std::int64_t>(sample.bytes.count()) / bytes_an_element(sample.label);
}

}  // namespace

void measure_kernels(const std::vector<Sample>& samples, const Session& session) {
  const Stream stream = make_stream();
  for (const Sample& sample : samples) {
    if (interrupted()) return;
    if (sample.kind == SampleKind::empty_kernel) {
      const auto timing = time_graph(
          stream.get(), [](cudaStream_t on) { launch(nothing, grid(1), on); }, sample.load, session.nvml);
      if (timing) session.add(sample, *timing);
      continue;
    }
    const Kernel& kernel = kernel_of(sample);
    const Buffers buffers(elements_of(sample));
    fill(buffers.x.as<Half>(), buffers.count, seed_of_x, stream.get());
    fill(buffers.z.as<Half>(), buffers.count, seed_of_z, stream.get());
    fill(buffers.scale.as<Half>(), row, seed_of_scale, stream.get());
    fill(buffers.shift.as<Half>(), row, seed_of_shift, stream.get());
    verify(kernel, buffers, stream.get());
    const auto timing = time_graph(
        stream.get(), [&](cudaStream_t on) { kernel.run(buffers, on); }, sample.load, session.nvml);
    if (timing) session.add(sample, *timing);
  }
}

}  // namespace headroom::harness
