// Report of a run that went out of memory.
#pragma once

#include <string>

#include "headroom/answer/oom.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const OomReply& reply, const Style& style);

}  // namespace headroom
