// What a user should be told of how a name or a file is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Sentences about the "model", "system" or "software" that a source means ("h100 is read as dgx-h100-80g"). Empty where all is
// read as it is written, and where it cannot be read, which its reader says.
std::vector<std::string> remarks_on(std::string_view kind, const std::string& source);

}  // namespace headroom
