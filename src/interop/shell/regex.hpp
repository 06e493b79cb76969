// Regular expressions of [[ TEXT =~ EXPRESSION ]] and of grep.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headroom::shell {

struct RegexKind {
  bool extended = true;  // of POSIX, as bash and `grep -E` have them; else basic
  bool ignores_case = false;
};

// Matches a text. The first item is what matched, and the others are what its brackets matched; no item: the text does not
// match. None: the expression is invalid, or could take long.
std::optional<std::vector<std::string>> match_regex(const std::string& text, const std::string& expression,
                                                    RegexKind kind = {});

}  // namespace headroom::shell
