#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "interop/shell/characters.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom::shell {

// An expression of $(( )), let and (( )). What depends on an unknown is this unknown.
class Arithmetic {
 public:
  Arithmetic(Interpreter& shell, std::string_view text) : shell_(shell), text_(text) {}

  struct Number {
    std::int64_t value = 0;
    std::optional<std::size_t> unknown = {};
  };

  Number run() {
    Number result = comma();
    skip();
    if (at_ < text_.size()) broken_ = true;
    if (broken_) result.unknown = marks_in(shell_.mark(Source::output, "$((" + known_text() + "))")).front();
    return result;
  }

 private:
  [[nodiscard]] std::string known_text() const {
    return is_known(text_) ? std::string(text_.substr(0, 60)) : "...";
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view sign, std::string_view not_before = {}) {
    skip();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(sign)) return false;
    if (rest.size() > sign.size() && not_before.find(rest[sign.size()]) != std::string_view::npos)
      return false;
    at_ += sign.size();
    return true;
  }

  Number comma() {
    Number left = ternary();
    while (take(",")) left = ternary();
    return left;
  }

  Number ternary() {
    if (++depth_ > 100) {
      broken_ = true;
      at_ = text_.size();
      return {};
    }
    const Number test = binary(0);
    if (!take("?")) {
      --depth_;
      return test;
    }
    const Number yes = ternary();
    if (!take(":")) broken_ = true;
    const Number no = ternary();
    --depth_;
    if (test.unknown) return test;
    return test.value != 0 ? yes : no;
  }

  struct Operator {
    std::string_view sign;
    std::string_view not_before;
    int level;
  };
  static constexpr Operator operators[] = {{"||", "", 0},  {"&&", "", 1},  {"|", "|=", 2}, {"^", "=", 3},
                                           {"&", "&=", 4}, {"==", "", 5},  {"!=", "", 5},  {"<=", "", 6},
                                           {">=", "", 6},  {"<<", "=", 7}, {">>", "=", 7}, {"<", "<", 6},
                                           {">", ">", 6},  {"+", "+=", 8}, {"-", "-=", 8}, {"**", "", 10},
                                           {"*", "*=", 9}, {"/", "=", 9},  {"%", "=", 9}};

  Number binary(int level) {
    if (level > 10) return unary();
    Number left = binary(level + 1);
    for (;;) {
      const Operator* found = nullptr;
      for (const Operator& one : operators) {
        if (one.level != level || !take(one.sign, one.not_before)) continue;
        found = &one;
        break;
      }
      if (found == nullptr || broken_) return left;
      const Number right = level == 10 ? binary(level) : binary(level + 1);
      left = of(found->sign, left, right);
    }
  }

  Number of(std::string_view sign, Number left, Number right) {
    if (left.unknown) return left;
    if (right.unknown) return right;
    const std::int64_t a = left.value;
    const std::int64_t b = right.value;
    const auto wrapped = [](auto value) { return Number{static_cast<std::int64_t>(value)}; };
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if (sign == "+") return wrapped(x + y);
    if (sign == "-") return wrapped(x - y);
    if (sign == "*") return wrapped(x * y);
    if (sign == "/" || sign == "%") {
      if (b == 0) {
        broken_ = true;
        return {};
      }
      if (b == -1) return wrapped(sign == "/" ? std::uint64_t{0} - x : std::uint64_t{0});
      return {sign == "/" ? a / b : a % b};
    }
    if (sign == "**") {
      std::uint64_t power = 1;
      for (std::int64_t i = 0; i < b && i < 64; ++i) power *= x;
      return wrapped(power);
    }
    if (sign == "<<") return wrapped(x << (y & 63U));
    if (sign == ">>") return {a >> (y & 63U)};
    if (sign == "&") return wrapped(x & y);
    if (sign == "|") return wrapped(x | y);
    if (sign == "^") return wrapped(x ^ y);
    const bool truth = sign == "=="   ? a == b
                       : sign == "!=" ? a != b
                       : sign == "<=" ? a <= b
                       : sign == ">=" ? a >= b
                       : sign == "<"  ? a < b
                       : sign == ">"  ? a > b
                       : sign == "&&" ? a != 0 && b != 0
                                      : a != 0 || b != 0;
    return {truth ? 1 : 0};
  }

  Number unary() {
    if (depth_ > 100) {
      broken_ = true;
      return {};
    }
    skip();
    if (take("++") || take("--")) {
      const char sign = text_[at_ - 1];
      const std::string name = identifier();
      return changed(name, sign == '+' ? 1 : -1);
    }
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '!' || c == '-' || c == '+' || c == '~') {
      ++at_;
      ++depth_;
      Number value = unary();
      --depth_;
      if (value.unknown) return value;
      if (c == '!') return {value.value == 0 ? 1 : 0};
      if (c == '~') return {~value.value};
      if (c == '-')
        return {static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(value.value))};
      return value;
    }
    if (take("(")) {
      const Number inside = comma();
      if (!take(")")) broken_ = true;
      return inside;
    }
    return operand();
  }

  std::string identifier() {
    skip();
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_name_start(text_[at_]) || (at_ > start && is_digit(text_[at_])))) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  Number changed(const std::string& name, std::int64_t by) {
    if (name.empty()) {
      broken_ = true;
      return {};
    }
    const Number after = of("+", variable(name, ""), {by});
    store(name, after);
    return after;
  }

  void store(const std::string& name, Number number) {
    shell_.set(
        name, Value(number.unknown ? mark_of(*number.unknown) : std::to_string(number.value), shell_.here()));
  }

  Number variable(const std::string& name, const std::string& index) {
    const std::optional<Value> value = index.empty() ? shell_.value_of(name) : shell_.item_of(name, index);
    if (!value || value->empty()) return {};
    if (!is_known(value->text())) return {0, marks_in(value->text()).front()};
    std::int64_t number = 0;
    const std::string& text = value->text();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size() && (text[0] != '0' || text.size() == 1))
      return {number};
    if (++shell_.depth_ > 50) shell_.fail("a number refers to itself");
    Arithmetic inner(shell_, text);
    const Number result = inner.run();
    --shell_.depth_;
    return result;
  }

  Number operand() {
    skip();
    if (at_ >= text_.size()) {
      if (!text_.empty() && text_.find_first_not_of(" \t\n") != std::string_view::npos) broken_ = true;
      return {};
    }
    const char c = text_[at_];
    if (c == mark_start) {
      const std::size_t end = text_.find(mark_end, at_);
      const std::size_t mark = marks_in(text_.substr(at_)).front();
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
      // Digits beside a mark are of one number.
      while (at_ < text_.size() && (is_digit(text_[at_]) || is_name_start(text_[at_]))) ++at_;
      return {0, mark};
    }
    if (is_digit(c)) return literal();
    const std::string name = identifier();
    if (name.empty()) {
      broken_ = true;
      at_ = text_.size();
      return {};
    }
    std::string index;
    if (take("[")) {
      const std::size_t end = std::min(text_.find(']', at_), text_.size());
      index = text_.substr(at_, end - at_);
      at_ = std::min(end + 1, text_.size());
    }
    if (take("++") || take("--")) {
      const bool up = text_[at_ - 1] == '+';
      const Number before = variable(name, index);
      store(name, of("+", before, {up ? 1 : -1}));
      return before;
    }
    for (const std::string_view sign : {"+=", "-=", "*=", "/=", "%="}) {
      if (!take(sign)) continue;
      const Number right = ternary();
      const Number result = of(sign.substr(0, 1), variable(name, index), right);
      store(name, result);
      return result;
    }
    if (take("=", "=")) {
      const Number value = ternary();
      store(name, value);
      return value;
    }
    return variable(name, index);
  }

  Number literal() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || is_name_start(text_[at_]) || text_[at_] == '#'))
      ++at_;
    std::string_view digits = text_.substr(start, at_ - start);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (const std::size_t hash = digits.find('#'); hash != std::string_view::npos) {
      std::from_chars(digits.data(), digits.data() + hash, base);
      digits.remove_prefix(hash + 1);
    } else if (digits.size() > 1 && digits.front() == '0') {
      base = 8;
    }
    std::int64_t value = 0;
    if (base < 2 || base > 36) broken_ = true;
    if (broken_) return {};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size()) broken_ = true;
    return {value};
  }

  Interpreter& shell_;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool broken_ = false;
};

Value Interpreter::number_of(std::string_view expression) {
  charge(expression.size() + 10);
  const Arithmetic::Number number = Arithmetic(*this, expression).run();
  return {number.unknown ? mark_of(*number.unknown) : std::to_string(number.value), here()};
}

}  // namespace headroom::shell
