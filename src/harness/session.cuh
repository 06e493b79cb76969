// What measuring needs besides a GPU: where samples go, and who watches the device meanwhile.
#pragma once

#include <string>

#include "device_state.hpp"
#include "interrupt.hpp"
#include "report.hpp"
#include "timing.cuh"

namespace headroom::harness {

struct Session {
  Report* report;    // null on all ranks but the first
  const Nvml* nvml;  // null without NVML

  void add(const Sample& sample, const Timed& timed) const { add(sample, timed.timing, timed.state); }
  void add(const Sample& sample, const Timing& timing, const std::optional<DeviceState>& state) const {
    if (report != nullptr) report->add(sample, timing, state);
  }
  void wrong(const Sample& sample, const std::string& reason) const {
    if (report != nullptr) report->wrong(sample, reason);
  }
};

}  // namespace headroom::harness
