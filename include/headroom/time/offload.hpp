// Optimizer step with state partly on the host: the device's own work, the transfer of gradients to the host
// and of weights back, and the step of the host's CPUs. The host's memory bandwidth bounds that step for all
// of its devices together.
#pragma once

#include "headroom/hardware/system.hpp"
#include "headroom/memory/state.hpp"

namespace headroom {

struct OffloadedStep {
  Seconds device;
  Seconds gradients;  // gradients to the host
  Seconds host;       // step of the host's CPUs
  Seconds weights;    // weights back to the device
  friend bool operator==(const OffloadedStep&, const OffloadedStep&) = default;
};

// Returns the sum of the parts; if the offload overlaps them, the longest part.
Seconds total(const OffloadedStep& step, const Offload& offload);

// Returns the one-way bandwidth of a device while `devices` of its host transfer: its link, or its share of
// the host's memory bandwidth if that is less.
BytesPerSecond link_of(const Host& host, std::int64_t devices);

// Returns the times of an offloaded step. `on_device` is the time of the whole step on the device, of which
// `around` stays there. `devices` of the host are in use.
OffloadedStep offloaded_step(const Parameters& parameters, const Strategy& strategy, const Workload& workload,
                             Seconds on_device, Seconds around, const Software& software, const Host& host,
                             std::int64_t devices);

// Returns bytes that the host moves for each parameter that it steps: gradient read, main parameter and
// moments read and written, weight written.
double host_step_bytes(const Optimizer& optimizer);

}  // namespace headroom
