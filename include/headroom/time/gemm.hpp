// Time of a matrix product: the best of a library's tile shapes, whole waves of tiles over the multiprocessors, under
// the memory side of the roofline and the power cap of the device.
//
//   ks     = inner / split, rounded up to 32
//   math   = 2 x y ks / rate of one multiprocessor at that tile          tile of x by y
//   edge   = x y result_bytes / result bandwidth of one multiprocessor
//   time   = sum over waves (math + edge + wave_fill) [+ sum of split partial results]
//   gemm   = launch + max(least time, bytes / memory_bandwidth, FLOPs / power_cap)
#pragma once

#include <cstdint>

#include "headroom/core/units.hpp"
#include "headroom/hardware/device.hpp"
#include "headroom/hardware/rates.hpp"

namespace headroom {

// C[rows x columns] = A[rows x inner] B[inner x columns], `batch` of them in one kernel. Rates are those of half
// precision; with factors of another type the arithmetic is as much faster as the device's peak (assumed).
struct Gemm {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t inner = 1;
  std::int64_t result_bytes = 2;  // moved for each element of C: 2 stored in half, 8 added to an fp32 sum
  bool aligned = true;            // false: no 16-byte loads, so no tensor cores
  Dtype dtype = Dtype::half;      // of A and B
  friend bool operator==(const Gemm&, const Gemm&) = default;
};

Flops flops(const Gemm& gemm);

// `clock` scales every rate of arithmetic and nothing else: 1 for a burst of products, MatrixProductRates::sustained in
// a training step, times Software::product_rate.
Seconds gemm_time(const Gemm& gemm, const Device& device, const Rates& rates, double clock);

// Whether the rates were fitted on products of this size.
bool within_fit(const Gemm& gemm, const MatrixProductRates& rates);

}  // namespace headroom
