#include "interop/shell/regex.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <regex.h>

namespace headroom::shell {
namespace {

constexpr std::size_t longest_expression = 256;
constexpr int most_repetitions = 255;  // that every POSIX system has (RE_DUP_MAX)

// The time of repeated repetitions and large bounds grows as their product; that of references back is exponential.
bool may_take_long(const std::string& expression) {
  std::string plain;  // \{ of basic expressions as { of extended ones
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const bool escapes = expression[i] == '\\' && i + 1 < expression.size();
    if (escapes && expression[i + 1] >= '0' && expression[i + 1] <= '9') return true;
    if (!escapes) plain += expression[i];
  }
  for (std::size_t at = plain.find('{'); at != std::string::npos; at = plain.find('{', at + 1)) {
    for (std::size_t next = at + 1; next < plain.size() && plain[next] != '}';) {
      int bound = 0;
      const auto [end, error] = std::from_chars(plain.data() + next, plain.data() + plain.size(), bound);
      if (error == std::errc::result_out_of_range || bound > most_repetitions) return true;
      next = std::max(next + 1, static_cast<std::size_t>(end - plain.data()));
    }
  }
  return std::count(plain.begin(), plain.end(), '{') > 2 || plain.find("}{") != std::string::npos ||
         plain.find("){") != std::string::npos;
}

}  // namespace

struct Regex::Compiled {
  explicit Compiled(const std::string& expression, int flags)
      : is_valid(regcomp(&regex, expression.c_str(), flags) == 0) {}
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (is_valid) regfree(&regex);
  }

  regex_t regex{};
  bool is_valid;
};

std::optional<Regex> Regex::compile(const std::string& expression, Kind kind) {
  if (expression.size() > longest_expression || may_take_long(expression)) return std::nullopt;
  const int flags = (kind.extended ? REG_EXTENDED : 0) | (kind.ignores_case ? REG_ICASE : 0) |
                    (kind.has_groups ? 0 : REG_NOSUB);
  Regex regex;
  regex.compiled_ = std::make_shared<const Compiled>(expression, flags);
  return regex.compiled_->is_valid ? std::optional(std::move(regex)) : std::nullopt;
}

bool Regex::matches(const std::string& text) const {
  return regexec(&compiled_->regex, text.c_str(), 0, nullptr, 0) == 0;
}

std::vector<std::string> Regex::groups_in(const std::string& text) const {
  std::array<regmatch_t, 10> places{};
  std::vector<std::string> found;
  if (regexec(&compiled_->regex, text.c_str(), places.size(), places.data(), 0) != 0) return found;
  for (std::size_t i = 0; i <= std::min(compiled_->regex.re_nsub, places.size() - 1); ++i) {
    const auto from = static_cast<std::size_t>(std::max<regoff_t>(places[i].rm_so, 0));
    const auto to = static_cast<std::size_t>(std::max<regoff_t>(places[i].rm_eo, 0));
    found.push_back(text.substr(from, to - from));
  }
  return found;
}

}  // namespace headroom::shell
