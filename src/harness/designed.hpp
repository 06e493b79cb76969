// What headroom-measure measures: samples whose times are still to come. The design is here, in plain C++, so that
// it can be listed, counted and tested where there is no GPU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "headroom/calibrate/sample.hpp"

namespace headroom::harness {

// C[m x n] = A B, row by row in memory. What differs is how A and B lie there:
//   forward          A[m x k], B as W[n x k]       Y = X W'
//   data_gradient    A[m x k], B[k x n]            dX = dY W
//   weight_gradient  A as dY[k x m], B[k x n]      dW += dY' X, into fp32
enum class Layout : std::uint8_t { forward, data_gradient, weight_gradient };

// The labels of a product's and of a streaming kernel's sample say which it is.
Layout layout_of(const Sample& product);
inline constexpr std::string_view streaming_kernels[] = {"residual_add", "gelu",       "dropout",
                                                         "softmax",      "layer_norm", "copy"};
// Bytes that such a kernel moves for each element of half precision.
std::int64_t bytes_an_element(std::string_view streaming_kernel);

std::vector<Sample> designed_kernels();
std::vector<Sample> designed_products(const std::vector<HalfFormat>& formats);
// 2, 4, 8 ... ranks and all of them.
std::vector<std::int64_t> rank_counts(std::int64_t ranks);
// `nodes` that the ranks are spread over.
std::vector<Sample> designed_collectives(std::int64_t ranks, std::int64_t nodes);

// How long measuring a sample keeps a GPU busy, for an estimate of the time that is left: an assumption, not a
// measurement, of a device that reaches 200 TFLOP/s, 1 TB/s of memory and 100 GB/s of collectives.
Seconds assumed_duration(const Sample& sample);

}  // namespace headroom::harness
