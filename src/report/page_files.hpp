// Parts of a page that are compiled in: template, style sheets and scripts, in the order in which a page has them.
#pragma once

#include <span>

#include "headroom/io/catalog.hpp"

namespace headroom {

std::span<const EmbeddedFile> page_files();

}  // namespace headroom
