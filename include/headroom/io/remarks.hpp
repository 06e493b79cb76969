// Remarks for the user on how a name or a file is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// Returns sentences about the "model", "system" or "software" that a source means ("h100 is read as
// dgx-h100-80g"), and about the GPU memory in an override or a user's file. Empty if everything is read as
// written, or if the source cannot be read, which its reader reports.
std::vector<std::string> remarks_on(std::string_view kind, const std::string& source,
                                    const std::vector<std::string>& overrides = {});

// Returns remarks on a text of GPU memory: "80 GB" is read as 80 GiB.
std::vector<std::string> remarks_on_memory(const std::string& text);

}  // namespace headroom
