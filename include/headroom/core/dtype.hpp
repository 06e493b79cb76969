// Dtypes of tensors: their sizes, and which dtypes share a peak of the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// `half` is FP16 or BF16 if neither is stated; memory and tensor cores treat both alike. `fp8` has one scale
// a tensor. `fp8_blockwise` has one for 1 x 128 activations or 128 x 128 weights. `mxfp8` has one for 32
// elements, `nvfp4` one for 16. `e5m6` is for storage, with one for 128 [DeepSeek-V3, arXiv:2412.19437,
// section 3.3.3]. The bits of an element do not include scales.
enum class Dtype : std::uint8_t {
  boolean,
  half,
  fp32,
  int64,
  bf16,
  fp16,
  fp8,
  fp4,
  fp8_blockwise,
  mxfp8,
  nvfp4,
  int32,
  e5m6
};

// Unit of a device that computes with a dtype.
// half: the tensor cores, in 16 bits. none: no unit with a stated peak.
enum class Arithmetic : std::uint8_t { none, fp4, fp8, half, fp32 };

// Scales that blocks of elements share: the bits of a scale, and the elements of a block of activations and
// of weights. Per-tensor scales are too few to count.
struct BlockScales {
  int bits = 0;
  int block = 1;
  int weight_block = 1;
};

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  int bits;  // of one element
  Arithmetic arithmetic;
  BlockScales scales = {};
};

inline constexpr std::array<DtypeRow, 13> dtypes{{
    {Dtype::boolean, "boolean", 8, Arithmetic::none},
    {Dtype::half, "half", 16, Arithmetic::half},
    {Dtype::fp32, "fp32", 32, Arithmetic::fp32},
    {Dtype::int64, "int64", 64, Arithmetic::none},
    {Dtype::bf16, "bf16", 16, Arithmetic::half},
    {Dtype::fp16, "fp16", 16, Arithmetic::half},
    {Dtype::fp8, "fp8", 8, Arithmetic::fp8},
    {Dtype::fp4, "fp4", 4, Arithmetic::fp4},
    {Dtype::fp8_blockwise, "fp8_blockwise", 8, Arithmetic::fp8, {32, 128, 128 * 128}},
    {Dtype::mxfp8, "mxfp8", 8, Arithmetic::fp8, {8, 32, 32}},
    {Dtype::nvfp4, "nvfp4", 4, Arithmetic::fp4, {8, 16, 16}},
    {Dtype::int32, "int32", 32, Arithmetic::none},
    {Dtype::e5m6, "e5m6", 12, Arithmetic::none, {32, 128, 128 * 128}},
}};

constexpr const DtypeRow& row_of(Dtype dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

constexpr int bits_of(Dtype dtype) { return row_of(dtype).bits; }
constexpr Arithmetic arithmetic_of(Dtype dtype) { return row_of(dtype).arithmetic; }

// Returns whether the dtype is FP16, BF16 or `half`.
constexpr bool is_half(Dtype dtype) { return arithmetic_of(dtype) == Arithmetic::half; }

// Returns whether the dtype has fewer than 16 bits and runs in GEMMs, which tensor cores compute faster than
// in 16 bits.
constexpr bool is_narrow(Dtype dtype) {
  return arithmetic_of(dtype) == Arithmetic::fp8 || arithmetic_of(dtype) == Arithmetic::fp4;
}

// Returns whether the dtype has 16 bits or is FP32. Values and sums are stored in such dtypes.
constexpr bool is_floating(Dtype dtype) { return is_half(dtype) || dtype == Dtype::fp32; }
constexpr bool has_arithmetic(Dtype dtype) { return arithmetic_of(dtype) != Arithmetic::none; }

// Dtypes that a rule holds for, in the order of the table; a file or a flag may state one of them.
template <auto Rule>
inline constexpr auto dtypes_that = [] {
  constexpr std::size_t count = [] {
    std::size_t found = 0;
    for (const DtypeRow& row : dtypes) found += Rule(row.dtype) ? 1U : 0U;
    return found;
  }();
  std::array<Dtype, count> those{};
  std::size_t next = 0;
  for (const DtypeRow& row : dtypes) {
    if (Rule(row.dtype)) those[next++] = row.dtype;
  }
  return those;
}();

// Returns bytes of one element. Expects a dtype of whole bytes.
constexpr std::int64_t size_of(Dtype dtype) {
  EXPECTS(bits_of(dtype) % 8 == 0);
  return bits_of(dtype) / 8;
}

template <>
inline constexpr std::array<Spelling<Dtype>, dtypes.size()> spellings<Dtype>{{
    {Dtype::boolean, dtypes[0].name},
    {Dtype::half, dtypes[1].name},
    {Dtype::fp32, dtypes[2].name},
    {Dtype::int64, dtypes[3].name},
    {Dtype::bf16, dtypes[4].name},
    {Dtype::fp16, dtypes[5].name},
    {Dtype::fp8, dtypes[6].name},
    {Dtype::fp4, dtypes[7].name},
    {Dtype::fp8_blockwise, dtypes[8].name},
    {Dtype::mxfp8, dtypes[9].name},
    {Dtype::nvfp4, dtypes[10].name},
    {Dtype::int32, dtypes[11].name},
    {Dtype::e5m6, dtypes[12].name},
}};

}  // namespace headroom
