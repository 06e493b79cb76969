// What the device, the driver and the libraries call themselves.
#pragma once

#include <memory>

#include "device_state.hpp"
#include "report.hpp"

namespace headroom::harness {

// GPUs that CUDA can use here. Throws InputError, with CUDA's words, where there are none.
int device_count();

// NVML's view of a device; null without NVML.
std::unique_ptr<Nvml> nvml_of(int device);

// Of the current device.
Heading heading_of(const Nvml* nvml);

}  // namespace headroom::harness
