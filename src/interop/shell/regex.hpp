// Regular expressions of [[ TEXT =~ EXPRESSION ]].
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headroom::shell {

// Matches a text as bash does, by POSIX extended regular expressions. The first item is what matched, and the others are
// what its brackets matched; no item: the text does not match. None: the expression is invalid, or could take long.
std::optional<std::vector<std::string>> match_regex(const std::string& text, const std::string& expression);

}  // namespace headroom::shell
