#include "interop/shell/regex.hpp"

#include <algorithm>
#include <array>

#include <regex.h>

namespace headroom::shell {
namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::size_t longest_expression = 256;

// Repeated repetitions grow as their product, and references back take exponential time.
bool may_take_long(const std::string& expression) {
  const auto repetitions = std::count(expression.begin(), expression.end(), '{');
  for (std::size_t i = 0; i + 1 < expression.size(); ++i) {
    if (expression[i] == '\\' && expression[i + 1] >= '0' && expression[i + 1] <= '9') return true;
  }
  return repetitions > 2 || expression.find("}{") != std::string::npos ||
         (repetitions > 0 && expression.find("){") != std::string::npos);
}

}  // namespace

std::optional<std::vector<std::string>> match_regex(const std::string& text, const std::string& expression,
                                                    RegexKind kind) {
  if (text.size() > longest_text || expression.size() > longest_expression || may_take_long(expression))
    return std::nullopt;
  regex_t compiled;
  const int flags = (kind.extended ? REG_EXTENDED : 0) | (kind.ignores_case ? REG_ICASE : 0);
  if (regcomp(&compiled, expression.c_str(), flags) != 0) return std::nullopt;
  std::array<regmatch_t, 10> places{};
  const bool matches = regexec(&compiled, text.c_str(), places.size(), places.data(), 0) == 0;
  std::vector<std::string> found;
  for (std::size_t i = 0; matches && i <= std::min(compiled.re_nsub, places.size() - 1); ++i) {
    const auto from = static_cast<std::size_t>(std::max<regoff_t>(places[i].rm_so, 0));
    const auto to = static_cast<std::size_t>(std::max<regoff_t>(places[i].rm_eo, 0));
    found.push_back(text.substr(from, to - from));
  }
  regfree(&compiled);
  return found;
}

}  // namespace headroom::shell
