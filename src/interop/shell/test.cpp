#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "headroom/core/contains.hpp"
#include "interop/shell/expansion.hpp"
#include "interop/shell/interpreter.hpp"
#include "interop/shell/regex.hpp"

namespace headroom::shell {
namespace {

bool is_comparison(std::string_view word) {
  constexpr std::array<std::string_view, 16> words{"=",   "==",  "!=",  "=~",  "<",   ">",   "-eq", "-ne",
                                                   "-lt", "-le", "-gt", "-ge", "-ef", "-nt", "-ot", "=~"};
  return contains(words, word);
}

bool is_of_file(std::string_view word) {
  constexpr std::string_view letters = "abcdefghkprstuwxGLNOS";
  return word.size() == 2 && word[0] == '-' && letters.find(word[1]) != std::string_view::npos;
}

std::optional<std::int64_t> integer(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

// An operand of a condition: its text, and as a pattern; behind =~, as a regular expression.
struct Operand {
  std::string text;
  std::string pattern;
};

// [ ] and [[ ]]: or, and, not, brackets, and the tests of one and two operands.
class Test {
 public:
  Test(Interpreter& shell, std::vector<Operand> words, bool extended)
      : shell_(shell), words_(std::move(words)), extended_(extended) {}

  Outcome run() {
    if (words_.empty()) return {.value = false};
    Outcome result = any();
    if (at_ < words_.size()) result.certain = false;  // as a shell complains
    return result;
  }

 private:
  [[nodiscard]] bool at(std::string_view word) const {
    return at_ < words_.size() && words_[at_].text == word;
  }
  bool take(std::string_view word) {
    if (!at(word)) return false;
    ++at_;
    return true;
  }

  static Outcome joined(Outcome left, Outcome right, bool both) {
    Outcome result;
    result.value = both ? left.value && right.value : left.value || right.value;
    // What decides by itself is certain.
    const bool decided = (left.certain && left.value != both) || (right.certain && right.value != both);
    result.certain = (left.certain && right.certain) || decided;
    if (result.certain) return result;
    result.unknowns = std::move(left.unknowns);
    result.unknowns.insert(result.unknowns.end(), right.unknowns.begin(), right.unknowns.end());
    return result;
  }

  Outcome any() {
    Outcome left = all();
    while (take("||") || (!extended_ && take("-o"))) left = joined(std::move(left), all(), false);
    return left;
  }

  Outcome all() {
    Outcome left = inverted();
    while (take("&&") || (!extended_ && take("-a"))) left = joined(std::move(left), inverted(), true);
    return left;
  }

  Outcome inverted() {
    bool inverts = false;
    while (at("!") && at_ + 1 < words_.size()) {
      ++at_;
      inverts = !inverts;
    }
    Outcome result = primary();
    result.value = result.value != inverts;
    return result;
  }

  Outcome primary() {
    if (at_ >= words_.size()) return {.value = false};
    const bool compares = at_ + 2 < words_.size() && is_comparison(words_[at_ + 1].text);
    if (!compares && at("(") && ++depth_ < 100) {
      ++at_;
      Outcome inside = any();
      take(")");
      --depth_;
      return inside;
    }
    if (compares) {
      const Operand left = words_[at_];
      const std::string sign = words_[at_ + 1].text;
      const Operand right = words_[at_ + 2];
      at_ += 3;
      return compared(left.text, sign, right);
    }
    const std::string first = words_[at_++].text;
    const bool has_operand =
        at_ < words_.size() && !at("&&") && !at("||") && !at(")") && !at("-a") && !at("-o");
    if (has_operand && first.size() == 2 && first[0] == '-') {
      const std::string operand = words_[at_].text;
      if (first == "-z" || first == "-n") {
        ++at_;
        return of_known(operand, shell_.plain(operand).empty() == (first == "-z"));
      }
      if (first == "-v") {
        ++at_;
        return {.value = shell_.value_of(operand).has_value()};
      }
      if (is_of_file(first)) {  // a plain run has its files
        ++at_;
        shell_.tested_files_.insert(operand);
        return {.value = !shell_.plain(operand).empty(), .certain = false, .unknowns = {}};
      }
    }
    // `[ $X = a ]` of nothing is `[ = a ]`, which is false.
    if (is_comparison(first)) {
      at_ = words_.size();
      return {.value = false};
    }
    if (at_ < words_.size() && is_comparison(words_[at_].text)) {  // `[ $X = ]`
      const bool differs = words_[at_].text == "!=";
      ++at_;
      return of_known(first, differs && !shell_.plain(first).empty());
    }
    return of_known(first, !shell_.plain(first).empty());
  }

  Outcome of_known(const std::string& text, bool value) {
    return {.value = value, .certain = is_known(text), .unknowns = marks_in(text)};
  }

  Outcome compared(const std::string& left, const std::string& sign, const Operand& right) {
    Outcome result;
    result.certain = is_known(left) && is_known(right.text);
    result.unknowns = marks_in(left + right.text);
    const std::string a = shell_.plain(left);
    const std::string b = shell_.plain(right.text);
    const bool known = is_known(a) && is_known(b);
    if (sign == "=~") return matched(a, right.pattern, std::move(result));
    if (sign == "-ef" || sign == "-nt" || sign == "-ot") {
      result.certain = false;
      result.value = false;
      return result;
    }
    if (sign == "<" || sign == ">") {
      result.value = known && (sign == "<" ? a < b : a > b);
      return result;
    }
    if (sign == "=" || sign == "==" || sign == "!=") {
      const std::string pattern = extended_ ? right.pattern : b;
      const bool equal = known && (extended_ && is_known(right.pattern) ? matches(a, pattern) : a == b);
      result.value = equal != (sign == "!=");
      return result;
    }
    const std::optional<std::int64_t> x = known ? number(a) : std::nullopt;
    const std::optional<std::int64_t> y = known ? number(b) : std::nullopt;
    if (!x || !y) {  // an error of the test, which is false
      result.value = false;
      return result;
    }
    result.value = sign == "-eq"   ? *x == *y
                   : sign == "-ne" ? *x != *y
                   : sign == "-lt" ? *x < *y
                   : sign == "-le" ? *x <= *y
                   : sign == "-gt" ? *x > *y
                                   : *x >= *y;
    return result;
  }

  Outcome matched(const std::string& text, const std::string& expression, Outcome result) {
    constexpr std::size_t longest = 1024;  // groups take time that grows faster than the text
    shell_.charge(4 * (text.size() + 1) * (expression.size() + 1));
    const bool known = is_known(text) && is_known(expression) && text.size() <= longest;
    const auto regex = known ? Regex::compile(expression, {.has_groups = true}) : std::nullopt;
    result.certain = result.certain && regex.has_value();
    result.value = false;
    if (!regex) return result;
    const std::vector<std::string> found = regex->groups_in(text);
    result.value = !found.empty();
    Variable groups;
    groups.is_list = true;
    for (const std::string& group : found)
      groups.items.emplace(std::ssize(groups.items), Value(group, shell_.here()));
    shell_.state_.variables.insert_or_assign("BASH_REMATCH", std::move(groups));
    return result;
  }

  // [[ ]] takes expressions, and nothing for 0.
  std::optional<std::int64_t> number(const std::string& text) {
    if (!extended_) return integer(text);
    return integer(shell_.number_of(text).text());
  }

  Interpreter& shell_;
  std::vector<Operand> words_;
  bool extended_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::string Interpreter::plain(std::string_view text) const {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != mark_start) {
      result += text[at++];
      continue;
    }
    const std::size_t end = std::min(text.find(mark_end, at), text.size() - 1);
    const std::vector<std::size_t> marks = marks_in(text.substr(at, end + 1 - at));
    if (!marks.empty() && followed_.unknowns[marks.front()].source == Source::output)
      result.append(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  return result;
}

Outcome Interpreter::test(const std::vector<Value>& words) {
  std::vector<Operand> operands;
  operands.reserve(words.size());
  for (const Value& word : words) operands.push_back({word.text(), word.text()});
  return Test(*this, std::move(operands), false).run();
}

Outcome Interpreter::condition(const std::vector<Word>& words) {
  std::vector<Operand> operands;
  operands.reserve(words.size());
  bool is_regex = false;
  for (const Word& word : words) {
    operands.push_back({text_of(word).text(), (is_regex ? regex_of(word) : pattern_of(word)).text()});
    // What follows may be about the groups.
    if (is_regex && operands.size() > 2) Test(*this, {operands.end() - 3, operands.end()}, true).run();
    is_regex = word.raw == "=~";
  }
  return Test(*this, std::move(operands), true).run();
}

}  // namespace headroom::shell
