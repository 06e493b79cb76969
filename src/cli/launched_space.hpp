// What a search leaves out, since the files of a launch have no words for it.
#pragma once

#include "headroom/interop/launch.hpp"
#include "headroom/search/space.hpp"

namespace headroom::cli {

// Narrows what a space leaves open to what the files of `target` can say. Values that are asked for stay: their launch
// tells what it lacks. Says on stderr what is left out though the files could say some of it.
void narrow_to(LaunchTarget target, const Request& base, Space& space);

// Returns the stack as `target` starts it, without the choices that a wide search would try or price and the files
// cannot say. Expects a target that runs the stack.
Software searched_by(Software software, LaunchTarget target);

}  // namespace headroom::cli
