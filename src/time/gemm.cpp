#include "headroom/time/gemm.hpp"

#include <algorithm>
#include <limits>

#include "headroom/core/counts.hpp"
#include "headroom/model/precision.hpp"

namespace headroom {
namespace {

// Tiles and splits that cuBLAS and CUTLASS offer for 16-bit GEMMs on sm80, and no others.
struct Tile {
  std::int64_t x, y;
};
constexpr Tile tiles[] = {{256, 128}, {128, 256}, {128, 128}, {256, 64},
                          {64, 256},  {128, 64},  {64, 128},  {64, 64}};
constexpr Tile reference_tile = tiles[0];  // tile_peak is its rate
constexpr Tile full_tile{128, 128};        // a multiprocessor runs one at a time, or several smaller ones
constexpr std::int64_t splits[] = {1, 2, 3, 4, 6, 8};
constexpr std::int64_t shortest_split = 256;  // along k
constexpr std::int64_t inner_step = 32;
constexpr Seconds split_launch(2e-6);  // assumed: the second kernel, which adds the partial results

// Products of a precision are priced by a line of narrow_types, and by that of 16 bits: a type that has neither would end in an
// internal error.
static_assert(
    std::all_of(precisions.begin(), precisions.end(),
                [](const auto& row) { return is_half(row.dtype) || narrow_index(row.dtype).has_value(); }),
    "a dtype of `precisions` (model/precision.hpp) has no line in narrow_types (hardware/rates.hpp)");

constexpr double reciprocals(Tile tile) { return 1 / real(tile.x) + 1 / real(tile.y); }

// Returns the speed of a dtype's GEMMs over the speed that its rates state.
double speed_of(Dtype dtype, const Device& device, const Rates& rates) {
  if (is_half(dtype) || narrow_rates(rates, dtype) != nullptr) return 1;
  EXPECTS(has_peak(device, dtype));
  return peak_of(device, dtype) / peak_of(device, Dtype::half);
}

FlopsPerSecond tile_rate(Tile tile, const Gemm& gemm, const Device& device, const MatrixProductRates& rates,
                         double speed) {
  const double multiprocessors = real(device.multiprocessors);
  if (!gemm.aligned) return peak_of(device, Dtype::fp32) / multiprocessors;
  const double feed = rates.tile_feed.value * (reciprocals(tile) - reciprocals(reference_tile));
  return speed * rates.tile_peak.value / (multiprocessors * (1 + feed));
}

Seconds tiled_time(const Gemm& gemm, Tile tile, std::int64_t split, const Device& device,
                   const MatrixProductRates& rates, double speed, double clock) {
  const double multiprocessors = real(device.multiprocessors);
  const double elements = real(tile.x * tile.y);
  const double inner = real(ceiling(ceiling(gemm.inner, split), inner_step) * inner_step);
  const Seconds math = Flops(2 * elements * inner) / (tile_rate(tile, gemm, device, rates, speed) * clock);
  const Seconds edge =
      Bytes(elements * real(gemm.result_bytes)) / (rates.result_bandwidth.value / multiprocessors);

  const std::int64_t resident = std::max<std::int64_t>(1, full_tile.x * full_tile.y / (tile.x * tile.y));
  const std::int64_t count = gemm.batch * ceiling(gemm.rows, tile.x) * ceiling(gemm.columns, tile.y) * split;
  const std::int64_t wave = device.multiprocessors * resident;
  const std::int64_t rest = count % wave;
  const auto waves_of = [&](std::int64_t tiles_in_turn) {
    return real(tiles_in_turn) * (math + edge) + rates.wave_fill.value;
  };
  Seconds time = real(count / wave) * waves_of(resident);
  if (rest > 0) time += waves_of(ceiling(rest, device.multiprocessors));
  if (split > 1) {
    // Partial sums are written and read in FP32, and the result is stored in 16 bits.
    const Bytes partial_sums(real(gemm.rows * gemm.columns) *
                             real(size_of(Dtype::fp32) * split + size_of(Dtype::half)));
    time += partial_sums / rates.split_bandwidth.value + split_launch;
  }
  return time;
}

Bytes bytes_moved(const Gemm& gemm) {
  const double factors = real(gemm.rows * gemm.inner) + real(gemm.inner * gemm.columns);
  const double result = real(gemm.rows * gemm.columns);
  const double factor_bytes = real(bits_of(gemm.dtype)) / 8;
  return Bytes(real(gemm.batch) * (factor_bytes * factors + real(gemm.result_bytes) * result));
}

// Returns bytes of a result that is added to an FP32 sum: reading and writing the sum, less the 16-bit result
// that other GEMMs write.
Bytes sum_bytes(const Gemm& gemm) {
  if (gemm.result_bytes <= size_of(Dtype::fp32)) return Bytes(0);
  return Bytes(real(gemm.batch * gemm.rows * gemm.columns) * real(gemm.result_bytes - size_of(Dtype::half)));
}

}  // namespace

Flops flops(const Gemm& gemm) {
  return Flops(2 * real(gemm.batch) * real(gemm.rows) * real(gemm.columns) * real(gemm.inner));
}

Seconds gemm_time(const Gemm& gemm, const Device& device, const Rates& rates, double clock) {
  const MatrixProductRates& products = product_rates(rates, gemm.dtype);
  const double speed = speed_of(gemm.dtype, device, rates);
  Seconds best(std::numeric_limits<double>::infinity());
  for (const Tile tile : tiles) {
    for (const std::int64_t split : splits) {
      if (split > 1 && (gemm.batch > 1 || gemm.inner < shortest_split * split)) break;
      best = std::min(best, tiled_time(gemm, tile, split, device, products, speed, clock));
    }
  }
  const Seconds memory = bytes_moved(gemm) / products.memory_bandwidth.value;
  const Seconds power =
      flops(gemm) / (speed * products.power_cap.value * clock) + sum_bytes(gemm) / device.memory_bandwidth;
  return rates.kernels.launch.value + std::max({best, memory, power});
}

Seconds grouped_gemm_time(const Gemm& gemm, const Device& device, const GroupedProductRates& rates,
                          double clock) {
  const double multiprocessors = real(device.multiprocessors);
  const FlopsPerSecond rate = clock * rates.tile_peak.value / multiprocessors;
  const BytesPerSecond stores = rates.result_bandwidth.value / multiprocessors;
  const double inner = real(ceiling(gemm.inner, inner_step) * inner_step);
  Seconds best(std::numeric_limits<double>::infinity());
  for (const Tile tile : tiles) {
    const double elements = real(tile.x * tile.y);
    const std::int64_t count = gemm.batch * ceiling(gemm.rows, tile.x) * ceiling(gemm.columns, tile.y);
    const Seconds turn =
        Flops(2 * elements * inner) / rate + Bytes(elements * real(gemm.result_bytes)) / stores;
    best = std::min(best, real(ceiling(count, device.multiprocessors)) * turn);
  }
  return std::max(best, bytes_moved(gemm) / rates.memory_bandwidth.value) +
         real(gemm.batch) * rates.expert.value;
}

Seconds quantization_time(double elements, Dtype dtype, const Device& device, const Rates& rates,
                          const CastOptions& options) {
  EXPECTS(narrow_index(dtype).has_value());
  const int passes = quantization_passes(dtype, options.scale_known);
  const double element_bytes =
      real(passes * size_of(Dtype::half)) + real(std::int64_t{options.copies} * bits_of(dtype)) / 8;
  const Bytes moved(elements * element_bytes);
  if (const QuantizationRates* own = quantization_rates(rates, dtype))
    return own->launch.value + moved / own->bandwidth.value;
  return static_cast<double>(passes) * rates.kernels.launch.value +
         moved / (rates.streaming.bandwidth_share.value * device.memory_bandwidth);
}

bool within_fit(const Gemm& gemm, const MatrixProductRates& rates) {
  return holds(rates.fitted_sides, real(gemm.rows)) && holds(rates.fitted_sides, real(gemm.columns)) &&
         holds(rates.fitted_inner, real(gemm.inner));
}

double training_clock(const Performance& performance, const Software& software, Dtype dtype) {
  return product_rates(performance.rates, dtype).sustained.value * software.product_rate.value;
}

}  // namespace headroom
