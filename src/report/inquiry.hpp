// The answer to `headroom plan --why`: what is wrong with a strategy.
#pragma once

#include <string>

#include "headroom/answer/inquiry.hpp"
#include "headroom/report/table.hpp"

namespace headroom {

// `flags` are the strategy as the user asked about it.
std::string inquiry_text(const InquiryReply& inquiry, const std::string& flags, const Style& style);

}  // namespace headroom
