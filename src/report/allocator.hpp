// What PyTorch's allocator comes to hold for the peak rank of a plan, in sentences.
#pragma once

#include <string>

#include "headroom/plan/plan.hpp"

namespace headroom {

// Empty where it is not known.
std::string allocator_line(const Plan& plan);

// What comes of a plan whose tensors have room but for which the allocator comes to hold more than the device has, and what to set.
// Empty where it does not.
std::string held_too_much(const Plan& plan);

}  // namespace headroom
