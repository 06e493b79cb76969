// What a strategy has to hold to, and the problems of one that does not. For those who check it in parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "headroom/core/error.hpp"

namespace headroom {

inline std::string of_layers(std::string_view kind) {
  return kind.empty() ? std::string() : " of '" + std::string(kind) + "' layers";
}

class Rules {
 public:
  // `rule` is a text, or makes one: search asks a million times whether a strategy is legal, and rarely why not.
  template <class Rule>
  void require(bool holds, const char* flag, const Rule& rule) {
    if (holds) return;
    if constexpr (std::is_invocable_v<Rule>) {
      problems.push_back({flag, rule()});
    } else {
      problems.push_back({flag, rule});
    }
  }

  // `whole` of `what`, which layers of a kind may have of their own, is split evenly into `parts`.
  void require_divides(std::int64_t parts, std::int64_t whole, const char* flag, const char* what,
                       std::string_view kind = {}) {
    if (parts < 1) return;  // reported as such
    require(whole % parts == 0, flag, [&] {
      return std::string("must divide ") + what + of_layers(kind) + " (" + std::to_string(whole) + " % " +
             std::to_string(parts) + " = " + std::to_string(whole % parts) + ")";
    });
  }

  void require_at_least_one(std::int64_t value, const char* flag) {
    require(value >= 1, flag, [&] { return "must be at least 1, not " + std::to_string(value); });
  }

  std::vector<Problem> problems;
};

}  // namespace headroom
