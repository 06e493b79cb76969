#include "calibrate/precision_words.hpp"

#include <doctest/doctest.h>

namespace headroom {
namespace {

TEST_CASE("precision: words name it by its own name, or by its scaling") {
  CHECK(precision_of_words("") == Precision::bf16);
  CHECK(precision_of_words("fp16 mixed") == Precision::bf16);
  CHECK(precision_of_words("fp8") == Precision::fp8);
  CHECK(precision_of_words("MXFP8") == Precision::mxfp8);
  CHECK(precision_of_words("nvfp4 (first layers too)") == Precision::nvfp4);
  CHECK(precision_of_words("fp8 (TE delayed scaling, per-tensor)") == Precision::fp8_delayed);
  CHECK(precision_of_words("fp8 (TE hybrid, amax history 1024)") == Precision::fp8_delayed);
  CHECK(precision_of_words("fp8 (amp_fp8, TransformerEngine)") == Precision::fp8_delayed);
  CHECK(precision_of_words("fp8 (per-tensor current scaling)") == Precision::fp8);
  CHECK(precision_of_words("float8 (dynamic tensorwise)") == Precision::fp8);
  CHECK(precision_of_words("float8 (fsdp float8 all-gather)") == Precision::fp8);
  CHECK(precision_of_words("fp8 (blockwise scaling)") == Precision::fp8_blockwise);
}

TEST_CASE("precision: words that do not tell the scaling name none") {
  CHECK(!precision_of_words("fp8 (hybrid)"));
  CHECK(!precision_of_words("float8 (rowwise)"));
  CHECK(!precision_of_words("fp4"));
}

}  // namespace
}  // namespace headroom
