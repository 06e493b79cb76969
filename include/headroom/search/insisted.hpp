// What a question insists on, though a stack's launcher may have no words for it.
#pragma once

#include <string>
#include <vector>

#include "headroom/search/space.hpp"

namespace headroom {

// Returns the fields that the user set: those that the space restricts, and fields outside searches that differ
// from the stack's defaults. What the launcher refuses of them is searched all the same. Of several precisions the
// user leaves the choice.
std::vector<std::string> insisted_fields(const Request& base, const Space& space);

// Returns the request with its insisted fields.
Request with_insisted(Request base, const Space& space);

}  // namespace headroom
