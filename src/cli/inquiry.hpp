// What is wrong with a strategy that was asked about with plan --why.
#pragma once

#include <string>

#include "cli/request_flags.hpp"
#include "headroom/report/plan.hpp"

namespace headroom::cli {

// `why` are flags of estimate; what they leave out is as in `flags`, which `base` and `space` were read from.
Inquiry inquire(const std::string& why, const RequestFlags& flags, const Request& base, const Space& space);

}  // namespace headroom::cli
