// What a user should be told of how a name or a file is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Sentences about the "model", "system" or "software" that a source means ("h100 is read as dgx-h100-80g"), and about the memory
// that an override or a file of one's own gives a GPU. Empty where all is read as it is written, and where it cannot be read, which
// its reader says.
std::vector<std::string> remarks_on(std::string_view kind, const std::string& source,
                                    const std::vector<std::string>& overrides = {});

// Of the memory of a GPU: "80 GB" is read as 80 GiB.
std::vector<std::string> remarks_on_memory(const std::string& text);

}  // namespace headroom
