#include "headroom/model/transformer.hpp"

#include <doctest/doctest.h>

namespace headroom {

TEST_CASE("vocabulary: padded to a multiple of 128 t, as Megatron-LM pads it") {
  const Transformer gpt2{.vocabulary = 50257, .vocabulary_multiple = 128};
  CHECK(padded_vocabulary(gpt2, 1) == 50304);
  CHECK(padded_vocabulary(gpt2, 8) == 51200);
}

TEST_CASE("vocabulary: a multiple stays as it is") {
  const Transformer model{.vocabulary = 51200, .vocabulary_multiple = 128};
  CHECK(padded_vocabulary(model, 1) == 51200);
  CHECK(padded_vocabulary(model, 8) == 51200);
}

TEST_CASE("vocabulary: even without a multiple every rank holds as many rows") {
  CHECK(padded_vocabulary({.vocabulary = 50257, .vocabulary_multiple = 1}, 8) == 50264);
}

}  // namespace headroom
