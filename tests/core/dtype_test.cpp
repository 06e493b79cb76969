#include "headroom/core/dtype.hpp"

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("dtype: bytes of an element") {
  static_assert(size_of(Dtype::boolean) == 1);
  static_assert(size_of(Dtype::half) == 2);
  static_assert(size_of(Dtype::fp32) == 4);
  static_assert(size_of(Dtype::int64) == 8);
}

}  // namespace headroom
