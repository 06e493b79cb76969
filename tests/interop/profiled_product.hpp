// What tests of both kinds of profiles read from a product that ran three times.
#pragma once

#include <doctest/doctest.h>

#include "headroom/interop/profile.hpp"

namespace headroom::tests {

// Of 4096 x 1024 by 1024 x 512 in bf16, in kernels of 100, 300 + 20 and 140 us.
inline void check_product_of_three_times(const Profile& profile) {
  REQUIRE(profile.samples.samples.size() == 1);
  const Sample& sample = profile.samples.samples.front();
  CHECK(sample.kind == SampleKind::matrix_product);
  CHECK(sample.product == Gemm{.rows = 4096, .columns = 512, .inner = 1024});
  CHECK(sample.half_format == HalfFormat::bf16);
  CHECK(sample.load == Load::sustained);
  CHECK(sample.median.count() == doctest::Approx(140e-6));
}

}  // namespace headroom::tests
