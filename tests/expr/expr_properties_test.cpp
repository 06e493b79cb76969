// Laws that expressions must obey, on expressions nobody thought of.
//
// Symbols take powers of two and coefficients have denominators 1, 2 and 4, so that every value is a
// multiple of a power of two with few bits: doubles hold it exactly, and == is the right comparison.
#include <cctype>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/expr/expr.hpp"

namespace headroom {
namespace {

constexpr std::array used{Symbol::sequence, Symbol::hidden, Symbol::tensor_parallel};

int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }

Monomial any_term(int lowest_power) {
  Monomial term = Rational(between(-6, 6), std::int64_t{1} << between(0, 2));
  for (const Symbol symbol : used) {
    const int power = between(lowest_power, 2);
    for (int i = 0; i < power; ++i) term = term * Monomial(symbol);
    for (int i = power; i < 0; ++i) term = term / Monomial(symbol);
  }
  return term;
}

Expr any_expr(int lowest_power = -1) {
  Expr sum;
  for (int i = between(0, 3); i > 0; --i) sum += any_term(lowest_power);
  return sum;
}

Bindings any_bindings() {
  Bindings letters;
  for (const Symbol symbol : used) letters.bind(symbol, 1 << between(0, 2));
  return letters;
}

// Reads what to_string() prints, knowing nothing of how it prints: sums of products of numbers, letters
// with exponents and parentheses, with "/" applying to the factor after it.
class PrintedForm {
 public:
  PrintedForm(std::string_view text, const Bindings& letters) : text_(text), letters_(letters) {}

  double value() {
    const double result = sum();
    RC_ASSERT(position_ == text_.size());
    return result;
  }

 private:
  bool take(std::string_view token) {
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  double sum() {
    double result = take("-") ? -product() : product();
    while (true) {
      if (take(" + ")) {
        result += product();
      } else if (take(" - ")) {
        result -= product();
      } else {
        return result;
      }
    }
  }

  double product() {
    double result = factor();
    while (true) {
      const std::string_view rest = text_.substr(position_);
      if (take("/")) {
        result /= factor();
      } else if (!rest.starts_with(" + ") && !rest.starts_with(" - ") && take(" ")) {
        result *= factor();
      } else {
        return result;
      }
    }
  }

  double number() {
    double result = 0;
    RC_ASSERT(position_ < text_.size() && std::isdigit(text_[position_]) != 0);
    while (position_ < text_.size() && std::isdigit(text_[position_]) != 0)
      result = 10 * result + (text_[position_++] - '0');
    return result;
  }

  double factor() {
    if (take("(")) {
      const double inside = sum();
      RC_ASSERT(take(")"));
      return inside;
    }
    for (const Notation& entry : notation) {
      if (!take(std::string(1, entry.letter))) continue;
      double power = letters_[entry.symbol];
      if (take("^")) {
        const double base = power;
        for (double i = number(); i > 1; --i) power *= base;
      }
      return power;
    }
    return number();
  }

  std::string_view text_;
  std::size_t position_ = 0;
  const Bindings& letters_;
};

}  // namespace

TEST_CASE("expr: the laws of a commutative ring") {
  CHECK(rc::check([] {
    const Expr x = any_expr();
    const Expr y = any_expr();
    const Expr z = any_expr();
    RC_ASSERT(x + y == y + x);
    RC_ASSERT((x + y) + z == x + (y + z));
    RC_ASSERT(x * y == y * x);
    RC_ASSERT((x * y) * z == x * (y * z));
    RC_ASSERT(x * (y + z) == x * y + x * z);
    RC_ASSERT(x + 0 == x);
    RC_ASSERT(x * 1 == x);
    RC_ASSERT(x * 0 == 0);
    RC_ASSERT(x - x == 0);
    RC_ASSERT(x - y == x + y * Expr(-1));
  }));
}

TEST_CASE("expr: dividing by a term undoes multiplying by it") {
  CHECK(rc::check([] {
    const Expr x = any_expr();
    const Monomial y = any_term(-1);
    RC_PRE(!(y.coefficient == Rational(0)));
    RC_ASSERT(x * y / y == x);
  }));
}

TEST_CASE("expr: the value of a sum or a product is that of the values") {
  CHECK(rc::check([] {
    const Expr x = any_expr();
    const Expr y = any_expr();
    const Bindings letters = any_bindings();
    RC_ASSERT((x + y).evaluate(letters) == x.evaluate(letters) + y.evaluate(letters));
    RC_ASSERT((x - y).evaluate(letters) == x.evaluate(letters) - y.evaluate(letters));
    RC_ASSERT((x * y).evaluate(letters) == x.evaluate(letters) * y.evaluate(letters));
  }));
}

TEST_CASE("expr: substituting a term and then evaluating is evaluating with its value") {
  CHECK(rc::check([] {
    const Expr x = any_expr();
    Bindings letters = any_bindings();
    // A single term may stand in denominators. Its coefficient is a power of two, so its reciprocal is
    // exact.
    Monomial term = Rational(1, std::int64_t{1} << between(0, 2));
    if (between(0, 1) == 1) term = term * Monomial(Symbol::sequence);
    if (between(0, 1) == 1) term = term / Monomial(Symbol::hidden);
    const Expr substituted = x.substitute(Symbol::tensor_parallel, term);
    const double value = substituted.evaluate(letters);
    letters.bind(Symbol::tensor_parallel, Expr(term).evaluate(letters));
    RC_ASSERT(value == x.evaluate(letters));
  }));
}

TEST_CASE("expr: substituting a sum and then evaluating is evaluating with its value") {
  CHECK(rc::check([] {
    const Expr x = any_expr(0);
    const Expr sum = any_term(0) + any_term(0);
    Bindings letters = any_bindings();
    const double value = x.substitute(Symbol::tensor_parallel, sum).evaluate(letters);
    letters.bind(Symbol::tensor_parallel, sum.evaluate(letters));
    RC_ASSERT(value == x.evaluate(letters));
  }));
}

TEST_CASE("expr: what is printed has the value of the expression") {
  CHECK(rc::check([] {
    const Expr x = any_expr();
    const Bindings letters = any_bindings();
    const std::string text = to_string(x);
    RC_LOG(text);
    RC_ASSERT(PrintedForm(text, letters).value() == x.evaluate(letters));
  }));
}

}  // namespace headroom
