#include "headroom/expr/expr.hpp"

#include <set>

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("expr: equal expressions are equal values, however they were written") {
  using namespace symbols;
  static_assert(s * b + h == h + b * s);
  static_assert(s * (b + h) == s * b + s * h);
  static_assert((s + h) * (s - h) == s * s - h * h);
  static_assert(s / t * t == s);
  static_assert(!(s * b == s * h));
}

TEST_CASE("expr: like terms merge and zero terms vanish") {
  using namespace symbols;
  static_assert((2 * s + 3 * s).size() == 1);
  static_assert(2 * s + 3 * s == 5 * s);
  static_assert((s - s).size() == 0);
  static_assert(s - s == 0);
  static_assert(0 * s == Expr());
  static_assert(Expr(0).size() == 0);
}

TEST_CASE("expr: a term that vanishes leaves no trace behind the others") {
  using namespace symbols;
  constexpr Expr sum = s + b + h - b;
  static_assert(sum == s + h);
  static_assert(sum.size() == 2);
}

TEST_CASE("expr: fractions cancel") {
  using namespace symbols;
  static_assert(s / 6 + s / 3 == s / 2);
  static_assert((4 * s * h) / (6 * h) == 2 * s / 3);
  static_assert((s * b + h * b) / b == s + h);
}

TEST_CASE("expr: substituting a number or a term") {
  using namespace symbols;
  static_assert(Expr(3 * s * s).substitute(Symbol::sequence, 2) == 12);
  static_assert((3 * s * s + s).substitute(Symbol::sequence, 2 * b) == 12 * b * b + 2 * b);
}

TEST_CASE("expr: substituting into a denominator") {
  using namespace symbols;
  static_assert(Expr(s / t).substitute(Symbol::tensor_parallel, 8) == s / 8);
  static_assert(Expr(s / (t * t)).substitute(Symbol::tensor_parallel, a / 2) == 4 * s / (a * a));
  static_assert((t + 1 / t).substitute(Symbol::tensor_parallel, h / a) == h / a + a / h);
}

TEST_CASE("expr: substituting a sum expands it") {
  using namespace symbols;
  static_assert(Expr(s * s).substitute(Symbol::sequence, b + 1) == b * b + 2 * b + 1);
}

TEST_CASE("expr: substituting zero drops the terms that have the symbol") {
  using namespace symbols;
  static_assert((s * b + h).substitute(Symbol::sequence, 0) == h);
}

TEST_CASE("expr: substituting a symbol that does not occur changes nothing") {
  using namespace symbols;
  static_assert((s * b + h / t).substitute(Symbol::vocabulary, 0) == s * b + h / t);
}

TEST_CASE("expr: evaluation of integers is exact") {
  using namespace symbols;
  constexpr Bindings gpt3 = Bindings()
                                .bind(Symbol::sequence, 2048)
                                .bind(Symbol::micro_batch, 1)
                                .bind(Symbol::hidden, 12288)
                                .bind(Symbol::heads, 96)
                                .bind(Symbol::tensor_parallel, 8);
  static_assert((s * b * h * (34 + 5 * a * s / h)).evaluate(gpt3) ==
                2048.0 * 12288 * 34 + 5.0 * 96 * 2048 * 2048);
  static_assert((s * b * h / t * (34 + 5 * a * s / h)).evaluate(gpt3) == 358'612'992);
  static_assert(Expr().evaluate(gpt3) == 0);
}

TEST_CASE("expr: numerator and denominator are multiplied out before they are divided") {
  using namespace symbols;
  // 49 (1/49) is not 1 in doubles, 49/49 is.
  static_assert(
      Expr(s / t).evaluate(Bindings().bind(Symbol::sequence, 49).bind(Symbol::tensor_parallel, 49)) == 1);
  static_assert(Expr(s / 3).evaluate(Bindings().bind(Symbol::sequence, 21)) == 7);
}

TEST_CASE("expr: prints single terms") {
  using namespace symbols;
  CHECK(to_string(Expr()) == "0");
  CHECK(to_string(Expr(7)) == "7");
  CHECK(to_string(Expr(-7)) == "-7");
  CHECK(to_string(s) == "s");
  CHECK(to_string(-1 * s) == "-s");
  CHECK(to_string(5 * a * s * s * b) == "5 a s^2 b");
  CHECK(to_string(5 * a * s / (h * t)) == "5 a s/(h t)");
  CHECK(to_string(24 / t) == "24/t");
  CHECK(to_string(1 / (t * t)) == "1/t^2");
  CHECK(to_string(s / 2) == "s/2");
  CHECK(to_string(-3 * s / (2 * h)) == "-3 s/(2 h)");
  CHECK(to_string(Expr(Monomial(Rational(-1, 2)))) == "-1/2");
}

TEST_CASE("expr: prints the paper's factored form") {
  using namespace symbols;
  CHECK(to_string(s * b * h * (34 + 5 * a * s / h)) == "s b h (34 + 5 a s/h)");
  CHECK(to_string(s * b * h * (10 + 24 / t + 5 * a * s / (h * t))) == "s b h (10 + 24/t + 5 a s/(h t))");
  CHECK(to_string(s * b * h / t * (34 + 5 * a * s / h)) == "s b h/t (34 + 5 a s/h)");
  CHECK(to_string(4 * s * b * h / t * (1 + v / h)) == "s b h/t (4 + 4 v/h)");
}

TEST_CASE("expr: prints sums without a common factor, and differences") {
  using namespace symbols;
  CHECK(to_string(1 + v / h) == "1 + v/h");
  CHECK(to_string(16 * s * b * h * (1 - 1 / t)) == "s b h (16 - 16/t)");
  CHECK(to_string(1 - s) == "-s + 1");
  // What all have is taken out, and otherwise what the first has.
  CHECK(to_string(2 * s * b * h + 64 * s * b) == "s b (2 h + 64)");
  CHECK(to_string(2 * s * b * h + 64 * a * s * b) == "s b h (2 + 64 a/h)");
}

TEST_CASE("expr: every symbol has a letter and a place of its own") {
  std::set<char> letters;
  std::size_t position = 0;
  for (const Notation& entry : notation) {
    CHECK(index_of(entry.symbol) == position++);
    CHECK(letter_of(entry.symbol) == entry.letter);
    letters.insert(entry.letter);
  }
  CHECK(letters.size() == symbol_count);
}

}  // namespace headroom
