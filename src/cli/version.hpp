// What this program is.
#pragma once

#include <string>

namespace headroom::cli {

// "0.2.0"
std::string version();

// "0.2.0 (commit 0123456789ab, GNU 12.2.0)"; a plus behind the commit: with changes that are not committed.
std::string version_and_build();

}  // namespace headroom::cli
