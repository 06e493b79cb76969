#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "filling.cuh"
#include "kernels.cuh"
#include "resources.cuh"

namespace headroom::harness {
namespace {

using Half = __nv_bfloat16;

constexpr int threads = 256;
constexpr int row = 2048;  // elements of a row of softmax and of layer norm
constexpr float epsilon = 1e-5F;
constexpr float kept = 0.9F;

__global__ void nothing() {}

__host__ __device__ float gelu_of(float x) {
  return 0.5F * x * (1 + tanhf(0.79788456F * (x + 0.044715F * x * x * x)));
}
__host__ __device__ bool keeps(std::uint64_t i) { return element(i, 7) < 2 * kept - 1; }

// Two elements a thread and step, so that loads are of four bytes or more and adjacent.
template <class F>
__device__ void for_pairs(std::uint64_t count, F action) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count / 2; i += step)
    action(i);
}
__device__ float2 pair(const Half* x, std::uint64_t i) {
  return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162*>(x)[i]);
}
__device__ void store(Half* y, std::uint64_t i, float2 value) {
  reinterpret_cast<__nv_bfloat162*>(y)[i] = __float22bfloat162_rn(value);
}

__global__ void residual_add(const Half* x, const Half* z, Half* y, std::uint8_t*, std::uint64_t count) {
  for_pairs(count, [&](std::uint64_t i) {
    const float2 a = pair(x, i);
    const float2 b = pair(z, i);
    store(y, i, {a.x + b.x, a.y + b.y});
  });
}
__global__ void gelu(const Half* x, const Half*, Half* y, std::uint8_t*, std::uint64_t count) {
  for_pairs(count, [&](std::uint64_t i) {
    const float2 a = pair(x, i);
    store(y, i, {gelu_of(a.x), gelu_of(a.y)});
  });
}
__global__ void dropout(const Half* x, const Half*, Half* y, std::uint8_t* mask, std::uint64_t count) {
  for_pairs(count, [&](std::uint64_t i) {
    const float2 a = pair(x, i);
    const bool first = keeps(2 * i);
    const bool second = keeps(2 * i + 1);
    store(y, i, {first ? a.x / kept : 0, second ? a.y / kept : 0});
    reinterpret_cast<uchar2*>(mask)[i] = {static_cast<unsigned char>(first),
                                          static_cast<unsigned char>(second)};
  });
}

__device__ float over_block(float value, bool largest) {
  __shared__ float parts[threads / 32];
  for (int step = 16; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFU, value, step);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < threads / 32; ++i) value = largest ? fmaxf(value, parts[i]) : value + parts[i];
  return value;
}

// A block for each row, which it holds in registers: read once, written once.
template <class F>
__device__ void for_rows(const Half* x, Half* y, std::uint64_t count, F action) {
  constexpr int pairs = row / 2 / threads;
  for (std::uint64_t r = blockIdx.x; r < count / row; r += gridDim.x) {
    float2 value[pairs];
    for (int i = 0; i < pairs; ++i) value[i] = pair(x, r * row / 2 + i * threads + threadIdx.x);
    action(value);
    for (int i = 0; i < pairs; ++i) store(y, r * row / 2 + i * threads + threadIdx.x, value[i]);
  }
}
__global__ void softmax(const Half* x, const Half*, Half* y, std::uint8_t*, std::uint64_t count) {
  for_rows(x, y, count, [](auto& value) {
    float most = -INFINITY;
    for (const float2& v : value) most = fmaxf(most, fmaxf(v.x, v.y));
    most = over_block(most, true);
    float sum = 0;
    for (float2& v : value) {
      v = {expf(v.x - most), expf(v.y - most)};
      sum += v.x + v.y;
    }
    sum = over_block(sum, false);
    for (float2& v : value) v = {v.x / sum, v.y / sum};
  });
}
__global__ void layer_norm(const Half* x, const Half*, Half* y, std::uint8_t*, std::uint64_t count) {
  for_rows(x, y, count, [](auto& value) {
    float sum = 0;
    float squares = 0;
    for (const float2& v : value) {
      sum += v.x + v.y;
      squares += v.x * v.x + v.y * v.y;
    }
    const float mean = over_block(sum, false) / row;
    const float scale = rsqrtf(over_block(squares, false) / row - mean * mean + epsilon);
    for (float2& v : value) v = {(v.x - mean) * scale, (v.y - mean) * scale};
  });
}

float input(std::uint64_t i) { return stored_element(i, 1); }

// The row that an element is in: its mean and mean square, or its largest and the sum of its exponentials.
double expected_of_row(std::uint64_t place, bool norm) {
  const std::uint64_t first = place / row * row;
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = first; i < first + row; ++i) {
    const double x = input(i);
    sum += norm ? x : std::exp(x);
    squares += x * x;
  }
  if (!norm) return std::exp(double(input(place))) / sum;
  const double mean = sum / row;
  return (input(place) - mean) / std::sqrt(squares / row - mean * mean + double(epsilon));
}

struct Kernel {
  const char* label;
  void (*run)(const Half*, const Half*, Half*, std::uint8_t*, std::uint64_t);
  int bytes_an_element;
  double (*expected)(std::uint64_t place);
};

constexpr Kernel kernels[] = {
    {"residual_add", residual_add, 6,
     [](std::uint64_t i) { return double(input(i)) + double(stored_element(i, 2)); }},
    {"gelu", gelu, 4, [](std::uint64_t i) { return double(gelu_of(input(i))); }},
    {"dropout", dropout, 5, [](std::uint64_t i) { return keeps(i) ? double(input(i) / kept) : 0.0; }},
    {"softmax", softmax, 4, [](std::uint64_t i) { return expected_of_row(i, false); }},
    {"layer_norm", layer_norm, 4, [](std::uint64_t i) { return expected_of_row(i, true); }},
};

std::vector<std::uint64_t> element_counts() {
  std::vector<std::uint64_t> counts;
  for (std::uint64_t count = 1U << 14U; count <= 1U << 28U; count *= 4) counts.push_back(count);
  return counts;
}

struct Buffers {
  explicit Buffers(std::uint64_t count) : x(2 * count), z(2 * count), y(2 * count), mask(count) {}
  Buffer x, z, y, mask;
};

void verify(const Kernel& kernel, const Buffers& buffers, std::uint64_t count) {
  constexpr std::uint64_t probes = 67;
  for (std::uint64_t i = 0; i < probes; ++i) {
    const std::uint64_t place = i * (count - 1) / (probes - 1);
    Half half{};
    check(cudaMemcpy(&half, buffers.y.as<Half>() + place, sizeof half, cudaMemcpyDeviceToHost));
    const double found = __bfloat162float(half);
    const double expected = kernel.expected(place);
    if (!(std::abs(found - expected) <= std::abs(expected) / 64 + 1e-5)) {
      throw std::runtime_error(std::string(kernel.label) + " is wrong: " + std::to_string(found) + " where " +
                               std::to_string(expected) + " was expected");
    }
  }
}

std::string members_of(const char* label, std::uint64_t bytes) {
  std::ostringstream text;
  text << R"("kind": "streaming", "label": ")" << label << R"(", "dtype": "half", "bytes": )" << bytes;
  return text.str();
}

}  // namespace

std::size_t kernel_samples() { return 1 + element_counts().size() * (std::size(kernels) + 1); }

void measure_kernels(Report& report) {
  const Stream stream = make_stream();
  report.add(R"("kind": "empty_kernel")", time_burst(stream.get(), [](cudaStream_t on) {
               nothing<<<1, 32, 0, on>>>();
               check(cudaGetLastError());
             }));
  int device = 0;
  int multiprocessors = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const auto blocks = static_cast<unsigned>(8 * multiprocessors);
  for (const std::uint64_t count : element_counts()) {
    const Buffers buffers(count);
    fill(buffers.x, 1, stream.get());
    fill(buffers.z, 2, stream.get());
    for (const Kernel& kernel : kernels) {
      if (interrupted()) return;
      const Work run = [&](cudaStream_t on) {
        kernel.run<<<blocks, threads, 0, on>>>(buffers.x.as<Half>(), buffers.z.as<Half>(),
                                               buffers.y.as<Half>(), buffers.mask.as<std::uint8_t>(), count);
        check(cudaGetLastError());
      };
      buffers.y.poison(stream.get());
      run(stream.get());
      check(cudaStreamSynchronize(stream.get()));
      verify(kernel, buffers, count);
      report.add(members_of(kernel.label, count * static_cast<std::uint64_t>(kernel.bytes_an_element)),
                 time_burst(stream.get(), run));
    }
    if (interrupted()) return;
    report.add(members_of("copy", 4 * count), time_burst(stream.get(), [&](cudaStream_t on) {
                 check(cudaMemcpyAsync(buffers.y.as<void>(), buffers.x.as<void>(), 2 * count,
                                       cudaMemcpyDeviceToDevice, on));
               }));
  }
}

}  // namespace headroom::harness
