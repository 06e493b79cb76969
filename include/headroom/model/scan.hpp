// Kernels of a scan over a sequence, as the mixer that runs them states them. time/scan.hpp prices them.
#pragma once

#include <cstdint>
#include <string_view>

namespace headroom {

// Sizes of a scan on one rank.
struct Scan {
  double tokens = 0;
  double heads = 0;
  double head_size = 0;
  double groups = 0;
  double state_size = 0;
  double chunk_size = 1;
  friend bool operator==(const Scan&, const Scan&) = default;
};

// Work of one pass.
struct ScanWork {
  double bytes = 0;            // read and written by all kernels but the convolution
  double convolved_bytes = 0;  // read and written by the convolution
  std::int64_t kernels = 0;    // launched by the host, plain framework operators included
};

struct ScanKernels {
  ScanWork (*forward)(const Scan&) = nullptr;
  ScanWork (*backward)(const Scan&) = nullptr;
  std::string_view graph_module;  // its module when CUDA graphs capture modules (hardware/launch_mode.hpp)
};

}  // namespace headroom
