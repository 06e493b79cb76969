// The changes that an engineer would try on a strategy, as values: for remedies (what would make it fit) and
// improvements (what would make it faster).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "headroom/plan/plan.hpp"

namespace headroom {

// A change and the flags that ask for it: "--recompute selective".
struct Change {
  std::string flags;
  std::function<void(Request&)> apply;
};

// Changes that leave the devices as they are: of what is kept, of the microbatch, and of how the devices are divided.
std::vector<Change> changes_on_same_devices(const Request& request);

// Changes that take more devices for a replica: twice the tensor- or pipeline-parallel size, and twice that, ...
std::vector<Change> changes_to_more_devices(const Request& request);

}  // namespace headroom
