#include "headroom/expr/expr.hpp"

#include <algorithm>
#include <string>

namespace headroom {
namespace {

// Factors in writing order with positive exponents: "5 a s^2". Empty for a bare 1.
struct Product {
  std::string text;
  int factors = 0;

  void multiply(const std::string& factor) { text += (factors++ > 0 ? " " : "") + factor; }
  void multiply(Symbol symbol, int power) {
    std::string factor(1, letter_of(symbol));
    if (power > 1) factor += "^" + std::to_string(power);
    multiply(factor);
  }
};

std::string quotient(const Product& above, const Product& below) {
  if (below.factors == 0) return above.text;
  return above.text + (below.factors == 1 ? "/" + below.text : "/(" + below.text + ")");
}

std::string to_string(const Monomial& term) {
  Product above;
  Product below;
  if (term.coefficient.denominator() != 1) below.multiply(std::to_string(term.coefficient.denominator()));
  const std::string whole = std::to_string(term.coefficient.numerator());
  for (const Notation& entry : notation) {
    const int power = term.power(entry.symbol);
    if (power > 0) above.multiply(entry.symbol, power);
    if (power < 0) below.multiply(entry.symbol, -power);
  }
  if (above.factors == 0) {
    above.multiply(whole);
  } else if (whole == "-1") {
    above.text = "-" + above.text;
  } else if (whole != "1") {
    above.text = whole + " " + above.text;
  }
  return quotient(above, below);
}

std::string sum(const Expr& expr) {
  std::string text;
  for (const Monomial& term : expr) {
    std::string summand = to_string(term);
    if (!text.empty()) {
      const bool negative = summand.front() == '-';
      text += negative ? " - " : " + ";
      if (negative) summand.erase(0, 1);
    }
    text += summand;
  }
  return text;
}

Monomial powers_of(Monomial term) {
  term.coefficient = 1;
  return term;
}

bool is_whole(const Monomial& factor) {
  return std::all_of(factor.powers.begin(), factor.powers.end(), [](auto power) { return power >= 0; });
}

// Returns whether a term has all powers of a factor.
bool has_powers(const Monomial& term, const Monomial& factor) {
  return std::equal(factor.powers.begin(), factor.powers.end(), term.powers.begin(),
                    [](auto due, auto power) { return due <= 0 || power >= due; });
}

// Returns the factor to write in front: a term whose powers all terms have, or else the leading term, as in
// the paper.
Monomial factor_in_front(const Expr& expr) {
  for (const Monomial& term : expr) {
    const bool shared =
        std::all_of(expr.begin(), expr.end(), [&](const Monomial& other) { return has_powers(other, term); });
    if (is_whole(term) && shared) return powers_of(term);
  }
  return powers_of(*expr.begin());
}

}  // namespace

std::string to_string(const Expr& expr) {
  if (expr.size() == 0) return "0";
  if (expr.size() == 1) return to_string(*expr.begin());
  const Monomial factor = factor_in_front(expr);
  if (factor == Monomial(1)) return sum(expr);
  return to_string(factor) + " (" + sum(expr / Expr(factor)) + ")";
}

}  // namespace headroom
