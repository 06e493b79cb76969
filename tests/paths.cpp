#include "paths.hpp"

namespace headroom::tests {

std::filesystem::path source_dir() { return HEADROOM_SOURCE_DIR; }

}  // namespace headroom::tests
