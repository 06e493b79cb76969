#include "headroom/core/fixed_vector.hpp"

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("fixed vector: holds what was pushed, at compile time too") {
  constexpr FixedVector<int, 3> numbers{4, 5};
  static_assert(numbers.size() == 2 && !numbers.empty());
  static_assert(numbers[1] == 5);
  static_assert(numbers.contains(4) && !numbers.contains(0));
  static_assert(numbers.end() - numbers.begin() == 2);
  static_assert(FixedVector<int, 3>().empty());
}

TEST_CASE("fixed vector: changes in place") {
  FixedVector<int, 3> numbers{1, 2};
  for (int& number : numbers) number *= 10;
  numbers[0] = 7;
  numbers.push_back(30);
  CHECK(numbers[0] == 7);
  CHECK(numbers[1] == 20);
  CHECK(numbers[2] == 30);
}

}  // namespace headroom
