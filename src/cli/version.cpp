#include "cli/version.hpp"

#include "commit.hpp"

namespace headroom::cli {

std::string version() { return HEADROOM_VERSION; }

std::string version_and_build() {
  const std::string commit = HEADROOM_COMMIT;
  return version() + " (" + (commit.empty() ? "" : "commit " + commit + ", ") + HEADROOM_COMPILER + ")";
}

}  // namespace headroom::cli
