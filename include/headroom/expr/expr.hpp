// Expressions in the paper's symbols: canonical Laurent polynomials with rational coefficients.
//
// Equal expressions are equal values: terms are merged, zero terms are dropped, and the rest have one order.
// So == proves a paper's equation, at compile time if the operands are constants. Capacities are fixed
// because GCC 12 allows no allocation to survive a constant expression.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "headroom/core/expects.hpp"
#include "headroom/expr/rational.hpp"
#include "headroom/expr/symbol.hpp"

namespace headroom {

// Values of symbols. Expects a value for every symbol of an evaluated expression.
class Bindings {
 public:
  constexpr Bindings& bind(Symbol symbol, double value) {
    values_[index_of(symbol)] = value;
    bound_[index_of(symbol)] = true;
    return *this;
  }
  [[nodiscard]] constexpr double operator[](Symbol symbol) const {
    EXPECTS(bound_[index_of(symbol)]);
    return values_[index_of(symbol)];
  }

 private:
  std::array<double, symbol_count> values_{};
  std::array<bool, symbol_count> bound_{};
};

// A rational coefficient times powers of symbols, negative powers included: 5 a s^2 b / t.
struct Monomial {
  Rational coefficient = 1;
  std::array<std::int8_t, symbol_count> powers{};

  constexpr Monomial() = default;
  constexpr Monomial(Rational value) : coefficient(value) {}  // NOLINT(google-explicit-constructor): 2 * s
  constexpr Monomial(std::int64_t value) : coefficient(value) {}       // NOLINT(google-explicit-constructor)
  constexpr Monomial(int value) : coefficient(value) {}                // NOLINT(google-explicit-constructor)
  constexpr Monomial(Symbol symbol) { powers[index_of(symbol)] = 1; }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] constexpr int power(Symbol symbol) const { return powers[index_of(symbol)]; }

  // Returns the value under the bindings. It is exact while numerator, denominator and quotient are integers
  // below 2^53.
  [[nodiscard]] constexpr double evaluate(const Bindings& bindings) const {
    auto numerator = static_cast<double>(coefficient.numerator());
    auto denominator = static_cast<double>(coefficient.denominator());
    for (const Notation& entry : notation) {
      for (int i = power(entry.symbol); i > 0; --i) numerator *= bindings[entry.symbol];
      for (int i = power(entry.symbol); i < 0; ++i) denominator *= bindings[entry.symbol];
    }
    return numerator / denominator;
  }

  friend constexpr bool operator==(const Monomial&, const Monomial&) = default;
  friend constexpr Monomial operator*(Monomial x, const Monomial& y) { return combine(x, y, +1); }
  friend constexpr Monomial operator/(Monomial x, const Monomial& y) { return combine(x, y, -1); }

 private:
  static constexpr Monomial combine(Monomial x, const Monomial& y, int sign) {
    x.coefficient = sign > 0 ? x.coefficient * y.coefficient : x.coefficient / y.coefficient;
    for (std::size_t i = 0; i < symbol_count; ++i) {
      const int power = x.powers[i] + sign * y.powers[i];
      EXPECTS(power >= INT8_MIN && power <= INT8_MAX);
      x.powers[i] = static_cast<std::int8_t>(power);
    }
    return x;
  }
};

class Expr {
 public:
  static constexpr std::size_t capacity = 32;

  constexpr Expr() = default;
  constexpr Expr(const Monomial& term) { add(term); }  // NOLINT(google-explicit-constructor): s * b + 1
  constexpr Expr(std::int64_t value) : Expr(Monomial(value)) {}  // NOLINT(google-explicit-constructor)
  constexpr Expr(int value) : Expr(Monomial(value)) {}           // NOLINT(google-explicit-constructor)
  constexpr Expr(Symbol symbol) : Expr(Monomial(symbol)) {}      // NOLINT(google-explicit-constructor)

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr const Monomial* begin() const { return terms_.data(); }
  [[nodiscard]] constexpr const Monomial* end() const { return terms_.data() + size_; }

  friend constexpr bool operator==(const Expr& x, const Expr& y) {
    if (x.size_ != y.size_) return false;
    for (std::size_t i = 0; i < x.size_; ++i) {
      if (!(x.terms_[i] == y.terms_[i])) return false;
    }
    return true;
  }

  constexpr Expr& operator+=(const Expr& other) {
    for (const Monomial& term : other) add(term);
    return *this;
  }
  friend constexpr Expr operator+(Expr x, const Expr& y) { return x += y; }
  friend constexpr Expr operator-(Expr x, const Expr& y) { return x += y * Expr(-1); }
  friend constexpr Expr operator*(const Expr& x, const Expr& y) {
    Expr product;
    for (const Monomial& left : x) {
      for (const Monomial& right : y) product.add(left * right);
    }
    return product;
  }
  // Returns the quotient. Expects a divisor of a single term that is not zero.
  friend constexpr Expr operator/(const Expr& x, const Expr& y) {
    EXPECTS(y.size_ == 1);
    return x * Expr(Monomial(1) / y.terms_[0]);
  }

  // Returns this expression with `replacement` in place of a symbol. Expects a replacement of a single term
  // if the symbol occurs in a denominator.
  [[nodiscard]] constexpr Expr substitute(Symbol symbol, const Expr& replacement) const {
    Expr result;
    for (const Monomial& term : *this) {
      Monomial rest = term;
      rest.powers[index_of(symbol)] = 0;
      Expr product = rest;
      for (int i = term.power(symbol); i > 0; --i) product = product * replacement;
      for (int i = term.power(symbol); i < 0; ++i) product = product / replacement;
      result += product;
    }
    return result;
  }

  [[nodiscard]] constexpr double evaluate(const Bindings& bindings) const {
    double sum = 0;
    for (const Monomial& term : *this) sum += term.evaluate(bindings);
    return sum;
  }

 private:
  // Symbols that decide the order of terms; higher powers come first. The part not divided by t leads, as in
  // K22, then the part that all layers share, then the part that is widest in h.
  static constexpr std::array<Symbol, symbol_count> precedence{Symbol::context_parallel,
                                                               Symbol::context_inner,
                                                               Symbol::expert_parallel,
                                                               Symbol::expert_tensor_parallel,
                                                               Symbol::tensor_parallel,
                                                               Symbol::layers,
                                                               Symbol::pipeline_parallel,
                                                               Symbol::virtual_pipeline,
                                                               Symbol::data_parallel,
                                                               Symbol::microbatches,
                                                               Symbol::imbalance,
                                                               Symbol::experts_per_token,
                                                               Symbol::expert_ranks_per_token,
                                                               Symbol::expert_groups,
                                                               Symbol::expert_groups_per_token,
                                                               Symbol::experts,
                                                               Symbol::hidden,
                                                               Symbol::feedforward,
                                                               Symbol::expert_feedforward,
                                                               Symbol::shared_feedforward,
                                                               Symbol::expert_latent,
                                                               Symbol::query_rank,
                                                               Symbol::key_value_rank,
                                                               Symbol::vocabulary,
                                                               Symbol::max_positions,
                                                               Symbol::head_size,
                                                               Symbol::plain_head_size,
                                                               Symbol::rotary_head_size,
                                                               Symbol::value_head_size,
                                                               Symbol::recurrent_heads,
                                                               Symbol::recurrent_head_size,
                                                               Symbol::recurrent_groups,
                                                               Symbol::recurrent_state_size,
                                                               Symbol::heads,
                                                               Symbol::key_value_heads,
                                                               Symbol::sequence,
                                                               Symbol::keys_met,
                                                               Symbol::keys_in_chunk,
                                                               Symbol::micro_batch,
                                                               Symbol::global_batch};

  // Returns a negative number if the powers of x come first, zero if they equal those of y.
  static constexpr int order(const Monomial& x, const Monomial& y) {
    for (const Symbol symbol : precedence) {
      if (x.power(symbol) != y.power(symbol)) return y.power(symbol) - x.power(symbol);
    }
    return 0;
  }

  constexpr void add(const Monomial& term) {
    if (term.coefficient == Rational(0)) return;
    std::size_t place = 0;
    while (place < size_ && order(terms_[place], term) < 0) ++place;
    if (place < size_ && order(terms_[place], term) == 0) {
      terms_[place].coefficient = terms_[place].coefficient + term.coefficient;
      if (terms_[place].coefficient == Rational(0)) erase(place);
      return;
    }
    EXPECTS(size_ < capacity);
    for (std::size_t i = size_++; i > place; --i) terms_[i] = terms_[i - 1];
    terms_[place] = term;
  }

  constexpr void erase(std::size_t place) {
    --size_;
    for (std::size_t i = place; i < size_; ++i) terms_[i] = terms_[i + 1];
    terms_[size_] = Monomial();
  }

  std::array<Monomial, capacity> terms_{};
  std::size_t size_ = 0;
};

// Sums and differences of single terms are expressions.
constexpr Expr operator+(const Monomial& x, const Monomial& y) { return Expr(x) + Expr(y); }
constexpr Expr operator-(const Monomial& x, const Monomial& y) { return Expr(x) - Expr(y); }

// Returns the paper's factored form, "s b h (10 + 24/t + 5 a s/(h t))". The factor is a term whose powers all
// terms have, or else the first term. Zero prints as "0".
std::string to_string(const Expr& expr);

// Letters of the notation. A function brings them in with a using-directive.
namespace symbols {
inline constexpr Monomial B{Symbol::global_batch};
inline constexpr Monomial a{Symbol::heads};
inline constexpr Monomial k{Symbol::key_value_heads};
inline constexpr Monomial E{Symbol::experts};
inline constexpr Monomial q{Symbol::experts_per_token};
inline constexpr Monomial r{Symbol::expert_ranks_per_token};
inline constexpr Monomial N{Symbol::expert_groups};
inline constexpr Monomial M{Symbol::expert_groups_per_token};
inline constexpr Monomial I{Symbol::imbalance};
inline constexpr Monomial s{Symbol::sequence};
inline constexpr Monomial o{Symbol::keys_met};
inline constexpr Monomial C{Symbol::keys_in_chunk};
inline constexpr Monomial b{Symbol::micro_batch};
inline constexpr Monomial h{Symbol::hidden};
inline constexpr Monomial R{Symbol::query_rank};
inline constexpr Monomial w{Symbol::key_value_rank};
inline constexpr Monomial e{Symbol::head_size};
inline constexpr Monomial i{Symbol::plain_head_size};
inline constexpr Monomial j{Symbol::rotary_head_size};
inline constexpr Monomial l{Symbol::value_head_size};
inline constexpr Monomial H{Symbol::recurrent_heads};
inline constexpr Monomial P{Symbol::recurrent_head_size};
inline constexpr Monomial G{Symbol::recurrent_groups};
inline constexpr Monomial S{Symbol::recurrent_state_size};
inline constexpr Monomial f{Symbol::feedforward};
inline constexpr Monomial g{Symbol::expert_feedforward};
inline constexpr Monomial D{Symbol::expert_latent};
inline constexpr Monomial u{Symbol::shared_feedforward};
inline constexpr Monomial v{Symbol::vocabulary};
inline constexpr Monomial x{Symbol::max_positions};
inline constexpr Monomial L{Symbol::layers};
inline constexpr Monomial n{Symbol::microbatches};
inline constexpr Monomial d{Symbol::data_parallel};
inline constexpr Monomial m{Symbol::virtual_pipeline};
inline constexpr Monomial p{Symbol::pipeline_parallel};
inline constexpr Monomial t{Symbol::tensor_parallel};
inline constexpr Monomial c{Symbol::context_parallel};
inline constexpr Monomial U{Symbol::context_inner};
inline constexpr Monomial y{Symbol::expert_parallel};
inline constexpr Monomial z{Symbol::expert_tensor_parallel};
}  // namespace symbols

}  // namespace headroom
