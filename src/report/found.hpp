// The answers of inverse questions, in words and as JSON.
#pragma once

#include <string>

#include "headroom/answer/plan.hpp"
#include "report/json.hpp"

namespace headroom {

// Returns a sentence: what was found on so many GPUs, what was searched, and in which time, if a time was
// given.
std::string found_text(const Found& found, const Request& base, std::int64_t devices,
                       const std::optional<InTime>& in_time = {});

// Returns a problem as a sentence that names the flag.
std::string problem_line(const Problem& problem);

OrderedJson found_json(const Found& found);

}  // namespace headroom
