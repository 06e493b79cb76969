// Report of `headroom list`.
#pragma once

#include <string>

#include "headroom/answer/list.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

std::string render(const ListReply& reply, const Style& style);

}  // namespace headroom
