// Sentences on what PyTorch's allocator reserves for a plan.
#pragma once

#include <string>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Returns a sentence on reserved memory; empty if it is not known.
std::string allocator_line(const Plan& plan);

// Returns what to expect, and what to set, if tensors fit but the allocator reserves more than the GPU has.
// Empty if it does not.
std::string held_too_much(const Plan& plan);

}  // namespace headroom
