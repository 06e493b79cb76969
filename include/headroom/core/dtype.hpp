// Element types of stored tensors and their sizes.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// `half` stands for fp16 and bf16 alike: memory does not tell them apart.
enum class Dtype : std::uint8_t { boolean, half, fp32, int64 };

template <>
inline constexpr std::array<Spelling<Dtype>, 4> spellings<Dtype>{{
    {Dtype::boolean, "boolean"},
    {Dtype::half, "half"},
    {Dtype::fp32, "fp32"},
    {Dtype::int64, "int64"},
}};

// Bytes of one element.
constexpr std::int64_t size_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean: return 1;
    case Dtype::half: return 2;
    case Dtype::fp32: return 4;
    case Dtype::int64: return 8;
  }
  EXPECTS(!"unknown dtype");
  return 0;
}

}  // namespace headroom
