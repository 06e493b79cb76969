// A step whose state is partly on the host: what the device does, the way of gradients to the host and of weights back, and what the
// host's CPUs do, which its memory's bandwidth bounds for all of its devices together.
#pragma once

#include "headroom/hardware/system.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {

struct OffloadedStep {
  Seconds device;
  Seconds gradients;  // to the host
  Seconds host;       // the step of its CPUs
  Seconds weights;    // back
  friend bool operator==(const OffloadedStep&, const OffloadedStep&) = default;
};

// One after the other, or, overlapped, the longest of them.
Seconds total(const OffloadedStep& step, const Offload& offload);

// What a device moves one way while `devices` of its host do: its link, or its part of what the host's memory moves.
BytesPerSecond link_of(const Host& host, std::int64_t devices);

// Where all of the step would take `on_device` there, of which `around` stays. `devices` of a host are used.
OffloadedStep offloaded_step(const Parameters& parameters, const Strategy& strategy, const Workload& workload,
                             Seconds on_device, Seconds around, const Software& software, const Host& host,
                             std::int64_t devices);

// Bytes that the host moves for each parameter that it steps: gradient read, main parameter and moments read and written, weight
// written.
double host_step_bytes(const Optimizer& optimizer);

}  // namespace headroom
