// What the tests of time/ price on: the embedded A100 system and K22's software.
#pragma once

#include <doctest/doctest.h>

#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/time/stage_time.hpp"
#include "papers/k22.hpp"

namespace headroom::tests {

inline const System& a100() {
  static const System system = read_system("dgx-a100-80g");
  return system;
}
inline const Performance& performance() { return *a100().performance; }
inline const Software& megatron() {
  static const Software software = read_software("megatron-2022");
  return software;
}

// doctest's Approx allows an absolute error too, longer than most kernels take.
inline doctest::Approx about(double seconds) { return doctest::Approx(seconds).scale(0); }

inline Setting setting(const k22::Run& run) {
  return setting_of(run.model, run.strategy, run.workload, a100().devices_per_node, performance(),
                    megatron());
}
inline LayerCost layer(const k22::Run& run) { return layer_cost(run.model, run.strategy, setting(run)); }

}  // namespace headroom::tests
