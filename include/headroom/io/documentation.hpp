// Pages of docs/, compiled into the library, for `headroom serve`.
#pragma once

#include <span>

#include "headroom/io/catalog.hpp"

namespace headroom {

// Returns every page, in Markdown, sorted by path: "docs/memory.md".
std::span<const EmbeddedFile> documentation_files();

}  // namespace headroom
