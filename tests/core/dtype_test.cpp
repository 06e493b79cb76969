#include "headroom/core/dtype.hpp"

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("dtype: bytes of an element") {
  static_assert(size_of(Dtype::boolean) == 1);
  static_assert(size_of(Dtype::half) == 2);
  static_assert(size_of(Dtype::fp32) == 4);
  static_assert(size_of(Dtype::int64) == 8);
  static_assert(size_of(Dtype::bf16) == size_of(Dtype::half));
  static_assert(bits_of(Dtype::fp8) == 8 && bits_of(Dtype::fp4) == 4);
}

TEST_CASE("dtype: every type has its row, in order, and its name") {
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    CHECK(static_cast<std::size_t>(dtypes[i].dtype) == i);
    CHECK(name_of(dtypes[i].dtype) == dtypes[i].name);
  }
}

TEST_CASE("dtype: half stands for both types of 16 bits") {
  for (const Dtype dtype : {Dtype::half, Dtype::bf16, Dtype::fp16}) CHECK(is_half(dtype));
  for (const Dtype dtype : {Dtype::boolean, Dtype::fp32, Dtype::int64, Dtype::fp8, Dtype::fp4})
    CHECK_FALSE(is_half(dtype));
}

TEST_CASE("dtype: lists of what may be said follow from the table") {
  static_assert(dtypes_that<is_floating> == std::array{Dtype::half, Dtype::fp32, Dtype::bf16, Dtype::fp16});
  static_assert(dtypes_that<is_narrow> ==
                std::array{Dtype::fp8, Dtype::fp4, Dtype::fp8_blockwise, Dtype::mxfp8, Dtype::nvfp4});
  static_assert(!has_arithmetic(Dtype::boolean) && !has_arithmetic(Dtype::int64));
}

}  // namespace headroom
