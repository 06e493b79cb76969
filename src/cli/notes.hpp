// What the program says on stderr beside its results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headroom::cli {

// Says each sentence once, however often it is to be said.
void tell_once(const std::vector<std::string>& sentences);

// Says how a name or a file of a "system" or a "software" is read, where that is not as it is written.
void note_reading(std::string_view kind, const std::string& source,
                  const std::vector<std::string>& overrides = {});

}  // namespace headroom::cli
