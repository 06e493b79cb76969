// A measured run that tests change.
#pragma once

#include "headroom/calibrate/measured_run.hpp"

namespace headroom::tests {

inline MeasuredRun own_run() {
  return {.name = "mine",
          .device = "A100-SXM4-80GB",
          .layers = 24,
          .hidden = 2048,
          .heads = 16,
          .vocabulary = 50257,
          .sequence = 2048,
          .tensor_parallel = 2,
          .sequence_parallel = true,
          .pipeline_parallel = 2,
          .data_parallel = 2,
          .global_batch = 32,
          .micro_batch = 2,
          .recompute = "selective",
          .iteration = Seconds(1)};
}

}  // namespace headroom::tests
