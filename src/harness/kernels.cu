#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "elements.hpp"
#include "filling.cuh"
#include "half.cuh"
#include "kernels.cuh"
#include "launch.cuh"
#include "streaming_kernels.cuh"

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

// Memory of one launch.
struct Slot {
  std::int64_t count;
  const Half *x, *z;
  Half* y;
  std::uint8_t* mask;
  const Half *scale, *shift;
  float* statistics;
};

// Of as many launches as it takes for none to find in the cache what an earlier one left there.
class Buffers {
 public:
  Buffers(std::int64_t elements, std::int64_t slots, cudaStream_t stream)
      : count_(elements),
        slots_(slots),
        x_(bytes(elements * slots)),
        z_(bytes(elements * slots)),
        y_(bytes(elements * slots)),
        mask_(static_cast<std::size_t>(elements * slots)),
        scale_(bytes(row)),
        shift_(bytes(row)),
        statistics_(static_cast<std::size_t>(elements * slots / row) * 2 * sizeof(float)) {
    fill(x_.as<Half>(), elements * slots, seed_of_x, stream);
    fill(z_.as<Half>(), elements * slots, seed_of_z, stream);
    fill(scale_.as<Half>(), row, seed_of_scale, stream);
    fill(shift_.as<Half>(), row, seed_of_shift, stream);
  }
  [[nodiscard]] Slot slot(std::int64_t launch) const {
    const std::int64_t at = launch % slots_ * count_;
    return {.count = count_,
            .x = x_.as<Half>() + at,
            .z = z_.as<Half>() + at,
            .y = y_.as<Half>() + at,
            .mask = mask_.as<std::uint8_t>() + at,
            .scale = scale_.as<Half>(),
            .shift = shift_.as<Half>(),
            .statistics = statistics_.as<float>() + at / row * 2};
  }
  void poison_results(cudaStream_t stream) const { y_.poison(stream); }

 private:
  static std::size_t bytes(std::int64_t elements) {
    return static_cast<std::size_t>(elements) * sizeof(Half);
  }
  std::int64_t count_, slots_;
  Buffer x_, z_, y_, mask_, scale_, shift_, statistics_;
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
  void (*run)(const Slot&, cudaStream_t);
  double (*expected)(std::uint64_t place);
};

constexpr Kernel kernels[] = {
    {"residual_add",
     [](const Slot& on, cudaStream_t stream) { residual_add(on.x, on.z, on.y, on.count, stream); },
     [](std::uint64_t i) { return input(i) + filled<Half>(i, seed_of_z); }},
    {"gelu", [](const Slot& on, cudaStream_t stream) { gelu(on.x, on.y, on.count, stream); },
     [](std::uint64_t i) {
       const double x = input(i);
       return 0.5 * x * (1 + std::tanh(gelu_c * (x + gelu_d * x * x * x)));
     }},
    {"dropout",
     [](const Slot& on, cudaStream_t stream) { dropout(on.x, on.y, on.mask, on.count, mask_seed, stream); },
     [](std::uint64_t i) { return keeps(i, mask_seed) ? input(i) / double(kept_part) : 0.0; }},
    {"softmax",
     [](const Slot& on, cudaStream_t stream) { softmax(on.x, on.y, on.count / row, row, stream); },
     expected_softmax},
    {"layer_norm",
     [](const Slot& on, cudaStream_t stream) {
       layer_norm(on.x, on.scale, on.shift, on.y, on.statistics, on.count / row, row, stream);
     },
     expected_norm},
    {"copy",
     [](const Slot& on, cudaStream_t stream) {
       check(cudaMemcpyAsync(on.y, on.x, static_cast<std::size_t>(on.count) * sizeof(Half),
                             cudaMemcpyDeviceToDevice, stream));
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
  buffers.poison_results(stream);
  const Slot slot = buffers.slot(0);
  kernel.run(slot, stream);
  constexpr std::int64_t probes = 67;
  for (std::int64_t i = 0; i < probes; ++i) {
    const auto place = static_cast<std::uint64_t>(i * (slot.count - 1) / (probes - 1));
    const double found = read_one(slot.y, place, stream);
    const double expected = kernel.expected(place);
    if (!(std::abs(found - expected) <= 2 * HalfTraits<Half>::epsilon * std::abs(expected) + 1e-5)) {
      throw SampleError(std::string(kernel.label) + " is wrong: " + std::to_string(found) + " where " +
                        std::to_string(expected) + " was expected");
    }
  }
}

// So that all slots together move more than four times what the L2 cache holds: bytes come from memory and go there.
std::int64_t slots_for(Bytes moved) {
  int device = 0;
  int cache = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device));
  return static_cast<std::int64_t>(4.0 * cache / moved.count()) + 1;
}

void measure_empty(const Sample& sample, cudaStream_t stream, const Session& session) {
  const auto timing = time_launches(
      stream, [](cudaStream_t on) { launch(nothing, grid(1), on); }, session.nvml);
  if (timing) session.add(sample, *timing);
}

void measure_streaming(const Sample& sample, cudaStream_t stream, const Session& session) {
  const Kernel& kernel = kernel_of(sample);
  const auto elements = static_cast<std::int64_t>(sample.bytes.count()) / bytes_an_element(sample.label);
  const Buffers buffers(elements, slots_for(sample.bytes), stream);
  verify(kernel, buffers, stream);
  std::int64_t launches = 0;
  const auto timing = time_launches(
      stream, [&](cudaStream_t on) { kernel.run(buffers.slot(launches++), on); }, session.nvml);
  if (timing) session.add(sample, *timing);
}

}  // namespace

// Without graphs, as most training runs: the time model's shortest kernel is one of a stream, with the gap before the
// next.
void measure_kernels(const std::vector<Sample>& samples, const Session& session) {
  const Stream stream = make_stream();
  for (const Sample& sample : samples) {
    if (interrupted()) return;
    try {
      if (sample.kind == SampleKind::empty_kernel) {
        measure_empty(sample, stream.get(), session);
      } else {
        measure_streaming(sample, stream.get(), session);
      }
    } catch (const SampleError& error) {
      session.wrong(sample, error.what());
    }
  }
}

}  // namespace headroom::harness
