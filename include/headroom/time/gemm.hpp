// Time of a matrix product: the best of a library's tile shapes, whole waves of tiles over the multiprocessors, under
// the memory side of the roofline and the power cap of the device.
//
//   ks     = inner / split, rounded up to 32
//   math   = 2 x y ks / rate of one multiprocessor at that tile          tile of x by y
//   edge   = x y result_bytes / result bandwidth of one multiprocessor
//   time   = sum over waves (math + edge + wave_fill) [+ sum of split partial results]
//   sum    = what a result that is added to an fp32 sum moves beyond one of 16 bits / the device's memory bandwidth
//   gemm   = launch + max(least time, bytes / memory_bandwidth, FLOPs / power_cap + sum)
//
// The sum is read and written when a tile's arithmetic is over, so that the power limit does not hide it: measured gradients of weights
// of a B200 (docs/calibration.md) are met within 3.5% median by that, and 7.8% without, with nothing fitted to them.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// C[rows x columns] = A[rows x inner] B[inner x columns], `batch` of them in one kernel. Rates are those of the factors'
// type; where it has none of its own, they are those of 16 bits, with arithmetic as much faster as the device's peak
// (assumed).
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  std::int64_t result_bytes =
      size_of(Dtype::half);   // moved for each element of C: 8 where added to an fp32 sum
  bool aligned = true;        // false: no 16-byte loads, so no tensor cores
  Dtype dtype = Dtype::half;  // of A and B
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

Flops flops(const Gemm& gemm);

// `clock` scales every rate of arithmetic and nothing else: 1 for a burst of products, MatrixProductRates::sustained in
// a training step, times Software::product_rate.
Seconds gemm_time(const Gemm& gemm, const Device& device, const Rates& rates, double clock);

// Products of the same inner and columns, one for each of `batch` experts with `rows` rows, all in one kernel whose
// multiprocessors take tile after tile of whichever expert. An expert's rows are rounded up to whole tiles.
//
//   turns   = experts x tiles of one / multiprocessors, rounded up
//   grouped = max(turns (2 x y inner / rate + x y result_bytes / result bandwidth), bytes / memory_bandwidth)
//             + experts x expert
Seconds grouped_gemm_time(const Gemm& gemm, const Device& device, const GroupedProductRates& rates,
                          double clock);

// Time to turn a tensor of 16 bits into a type of fewer: it is read once for each pass and written.
//
//   quantization = launch + elements (2 passes + copies bits / 8) / bandwidth
//
// One scale a tensor, of this tensor (fp8, "current scaling"), takes a pass for the largest element before that which
// casts, unless it is known; a scale for each block takes one pass. Expects a type of narrow_types. Where it has no rates
// of its own, the bandwidth is that of streaming kernels and the launch that of a kernel for each pass.
struct CastOptions {
  bool scale_known = false;
  int copies = 1;
};
constexpr int quantization_passes(Dtype dtype, bool scale_known = false) {
  return dtype == Dtype::fp8 && !scale_known ? 2 : 1;
}
Seconds quantization_time(double elements, Dtype dtype, const Device& device, const Rates& rates,
                          const CastOptions& options = {});

// Factor on all rates of arithmetic of products of a type in a training step.
double training_clock(const Performance& performance, const Software& software, Dtype dtype);

// Whether the rates were fitted on products of this size.
bool within_fit(const Gemm& gemm, const MatrixProductRates& rates);

}  // namespace headroom
