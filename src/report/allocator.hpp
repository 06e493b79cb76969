// What PyTorch's allocator comes to hold for the peak rank of a plan, in sentences.
#pragma once

#include <string>

#include "headroom/answer/estimate.hpp"

namespace headroom {

// Empty where it is not known.
std::string allocator_line(const EstimateReply& reply);

// Of a plan that fits: what to set where the allocator comes to hold more than the device has. Empty where it does not.
std::string allocator_hint(const EstimateReply& reply);

}  // namespace headroom
