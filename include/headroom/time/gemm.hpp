// Time of a GEMM: the best of a library's tile shapes, in whole waves of tiles over the multiprocessors,
// under the memory side of the roofline and the device's power cap.
//
//   ks     = inner / split, rounded up to 32
//   math   = 2 x y ks / rate of one multiprocessor at that tile          tile of x by y
//   edge   = x y result_bytes / result bandwidth of one multiprocessor
//   time   = sum over waves (math + edge + wave_fill) [+ sum of split partial results]
//   sum    = bytes of adding to an FP32 sum, beyond a 16-bit result's / the device's memory bandwidth
//   gemm   = launch + max(least time, bytes / memory_bandwidth, FLOPs / power_cap + sum)
//
// A tile reads and writes the sum after its math, so the power limit does not hide it. With this term,
// predictions meet measured weight gradients on B200 (docs/rates.md) within a median 3.5%; without it,
// within 7.8%. Nothing was fitted to those samples.
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// A GEMM: C[rows x columns] = A[rows x inner] B[inner x columns], `batch` of them in one kernel. Its rates
// are those of its operands' dtype. A dtype without rates takes the 16-bit rates, with FLOP rates scaled by
// the device's peaks (assumed).
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  std::int64_t result_bytes = size_of(Dtype::half);  // moved per element of C; 8 if added to an FP32 sum
  bool aligned = true;                               // false: no 16-byte loads, so no tensor cores
  Dtype dtype = Dtype::half;                         // of A and B
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

Flops flops(const Gemm& gemm);

// Returns the time of a GEMM. `clock` scales FLOP rates only. It is 1 for a burst; in a training step, it is
// MatrixProductRates::sustained times Software::product_rate.
Seconds gemm_time(const Gemm& gemm, const Device& device, const Rates& rates, double clock);

// Returns the time of a grouped GEMM: one kernel with a GEMM of `rows` tokens for each of `batch` experts.
// All GEMMs share `inner` and `columns`. Multiprocessors take tile after tile of any expert. An expert's
// tokens are rounded up to whole tiles.
//
//   turns   = experts x tiles of one / multiprocessors, rounded up
//   grouped = max(turns (2 x y inner / rate + x y result_bytes / result bandwidth), bytes / memory_bandwidth)
//             + experts x expert
Seconds grouped_gemm_time(const Gemm& gemm, const Device& device, const GroupedProductRates& rates,
                          double clock);

// Options of a cast from 16 bits to fewer. The tensor is read once for each pass and written once a copy.
//
//   quantization = launch + elements (2 passes + copies bits / 8) / bandwidth
//
// Per-tensor scaling of the current tensor (fp8, "current scaling") needs a pass for the largest element
// before the cast, unless the scale is known. Block scaling takes one pass.
struct CastOptions {
  bool scale_known = false;
  int copies = 1;
};
constexpr int quantization_passes(Dtype dtype, bool scale_known = false) {
  return dtype == Dtype::fp8 && !scale_known ? 2 : 1;
}
// Returns the time of a cast of `elements` elements to `dtype`. Expects a dtype of narrow_types. A dtype
// without rates takes the bandwidth of memory-bound kernels and one kernel launch for each pass.
Seconds quantization_time(double elements, Dtype dtype, const Device& device, const Rates& rates,
                          const CastOptions& options = {});

// Returns the factor on all FLOP rates of a dtype's GEMMs in a training step.
double training_clock(const Performance& performance, const Software& software, Dtype dtype);

// Returns whether the rates were fitted on GEMMs of this size.
bool within_fit(const Gemm& gemm, const MatrixProductRates& rates);

}  // namespace headroom
