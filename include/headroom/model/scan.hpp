// Kernels of a scan over a sequence, as the mixer that runs them states them. time/scan.hpp prices them.
#pragma once

#include <cstdint>
#include <string_view>

#include "headroom/core/units.hpp"

namespace headroom {

// Sizes of a scan on one rank.
struct Scan {
  double tokens = 0;
  double sequence = 0;  // tokens of one sequence
  double heads = 0;
  double head_size = 0;
  double groups = 0;
  double state_size = 0;
  double chunk_size = 1;
  friend bool operator==(const Scan&, const Scan&) = default;
};

// Work of one pass.
struct ScanWork {
  double bytes = 0;            // read and written by all kernels but the convolution and those in steps
  double convolved_bytes = 0;  // read and written by the convolution
  std::int64_t kernels = 0;    // launched by the host, plain framework operators included
  BytesPerSecond bandwidth{};  // of one multiprocessor, for all kernels but the convolution
  double bytes_in_steps =
      0;                // read and written by kernels that take the chunks of a sequence one after another
  Seconds step_time{};  // least time of those kernels
};

struct ScanKernels {
  ScanWork (*forward)(const Scan&) = nullptr;
  ScanWork (*backward)(const Scan&) = nullptr;
  std::string_view graph_module;  // its module when CUDA graphs capture modules (hardware/launch_mode.hpp)
};

}  // namespace headroom
