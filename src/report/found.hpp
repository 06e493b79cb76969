// The answers of inverse questions, in words and as JSON.
#pragma once

#include <string>

#include "headroom/search/find.hpp"
#include "report/json.hpp"

namespace headroom {

// A sentence: what was found, and what was looked at.
std::string found_text(const Found& found, const Request& base);

OrderedJson found_json(const Found& found);

}  // namespace headroom
