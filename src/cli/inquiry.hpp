// Strategies that a plan is asked about, read from flags of estimate: `plan --why`, and the rows of `plan --measured`.
#pragma once

#include <string>

#include "cli/changed_flags.hpp"
#include "headroom/answer/plan.hpp"

namespace headroom::cli {

// Reads the flags in `text`; messages call it `option`. What it leaves out is as in `flags`, which `base` and `space`
// were read from; problems are of the devices, where they do not make a strategy. Throws InputError when it cannot
// be read or is about something else than the plan.
AskedStrategy read_inquiry(const std::string& option, const std::string& text, const AllFlags& flags,
                           const Request& base, const Space& space);

}  // namespace headroom::cli
