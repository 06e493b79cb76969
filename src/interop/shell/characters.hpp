// Characters as bash tells them apart.
#pragma once

#include <string_view>

namespace headroom::shell {

inline constexpr auto npos = std::string_view::npos;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace headroom::shell
