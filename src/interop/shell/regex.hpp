// Regular expressions of [[ TEXT =~ EXPRESSION ]] and of grep.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::shell {

// A POSIX regular expression.
class Regex {
 public:
  struct Kind {
    bool extended = true;  // as bash and `grep -E` have them; else basic
    bool ignores_case = false;
    bool has_groups = false;
  };

  // Returns nothing if the expression is invalid or may take long.
  static std::optional<Regex> compile(const std::string& expression, Kind kind);

  [[nodiscard]] bool matches(const std::string& text) const;
  // Returns the match and its groups; an empty list if the text does not match. Expects an expression with groups.
  [[nodiscard]] std::vector<std::string> groups_in(const std::string& text) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace headroom::shell
