// Errors in the user's input: every problem of a file or a command, reported at once.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// One problem. `where` names the file and field ("models/gpt3.json: /hidden") or the field of a strategy
// ("micro_batch"). `rule` says what must hold and what was found ("must be divisible by heads (12289 % 96 =
// 1)").
struct Problem {
  std::string where;
  std::string rule;
  friend bool operator==(const Problem&, const Problem&) = default;
};

// Thrown by readers and validators, caught only in main. what() holds one line per problem.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  InputError(std::string where, std::string rule);
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

// Returns the candidate nearest to a misspelt word by edit distance. Returns an empty text if no candidate is
// near, so that more than a third of the word would have to change.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

// Returns " (did you mean 'selective'?)", or an empty text if no candidate is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace headroom
