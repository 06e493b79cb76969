// Precision of a model's linears, and its scope: other parts of the model that use it. precision_ops.hpp
// applies both to op tables.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "headroom/core/dtype.hpp"
#include "headroom/core/names.hpp"
#include "headroom/model/precision_modules.hpp"

namespace headroom {

// Megatron-LM's recipes. fp8: one scale a tensor, from its own largest element (tensorwise, current scaling).
// fp8_delayed: one scale a tensor, from the largest elements of earlier steps. The others have a scale for
// each block (core/dtype.hpp).
enum class Precision : std::uint8_t { bf16, fp8, fp8_delayed, fp8_blockwise, mxfp8, nvfp4 };

// Part of its output's cast that a normalization kernel does: none, finding the largest element, or all of it
// [Transformer Engine, pytorch/csrc/extensions/normalization.cpp].
enum class NormCast : std::uint8_t { none, largest_element, whole };

struct PrecisionRow {
  Precision precision;
  std::string_view name;
  Dtype dtype;  // of the factors of GEMMs
  std::string_view copy;
  bool scale_known;  // before a tensor is, so that the cast reads it once
  NormCast in_norm;
  // Multiples that weight extents and tokens on a rank must have, for scales or for GEMM kernels.
  std::int64_t multiple;
  std::int64_t row_multiple;
  bool scales_blocks;  // in its GEMMs, as no GPU before Blackwell and MI350 does
};

inline constexpr std::array<PrecisionRow, 6> precisions{{
    {Precision::bf16, "bf16", Dtype::half, "", true, NormCast::none, 1, 1, false},
    {Precision::fp8, "fp8", Dtype::fp8, "FP8 copy", false, NormCast::largest_element, 16, 16, false},
    {Precision::fp8_delayed, "fp8_delayed", Dtype::fp8, "FP8 copy", true, NormCast::whole, 16, 16, false},
    {Precision::fp8_blockwise, "fp8_blockwise", Dtype::fp8_blockwise, "FP8 copy", true, NormCast::none, 128,
     16, false},
    {Precision::mxfp8, "mxfp8", Dtype::mxfp8, "MXFP8 copy", true, NormCast::none, 32, 32, true},
    {Precision::nvfp4, "nvfp4", Dtype::nvfp4, "NVFP4 copy", true, NormCast::largest_element, 32, 32, true},
}};

constexpr const PrecisionRow& row_of(Precision precision) {
  return precisions[static_cast<std::size_t>(precision)];
}

constexpr bool is_narrow(Precision precision) { return is_narrow(row_of(precision).dtype); }

// Returns the dtype of the factors in most of a model's GEMMs. Utilization is measured against its peak.
constexpr Dtype compute_dtype(Precision precision) { return row_of(precision).dtype; }

// Parts of a model that use its precision besides the linears of layers, and layers that stay at 16 bits.
struct PrecisionScope {
  std::int64_t bf16_layers_at_start = 0;  // all of them at 16 bits [Megatron-LM, --first-last-layers-bf16]
  std::int64_t bf16_layers_at_end = 0;
  bool attention = false;     // the products of flash attention [Megatron-LM, --fp8-dot-product-attention]
  bool output_layer = false;  // [Megatron-LM, --fp8-output-proj]
  PrecisionModules bf16_modules = {};  // at 16 bits in every layer [Megatron-LM, --te-precision-config-file]
  // In any precision: a SwiGLU saves its input in E4M3 [Megatron-LM, --activation-func-fp8-input-store].
  bool activation_input = false;
  friend constexpr auto operator<=>(const PrecisionScope&, const PrecisionScope&) = default;
};

constexpr bool has_bf16_layers(const PrecisionScope& scope) {
  return scope.bf16_layers_at_start > 0 || scope.bf16_layers_at_end > 0;
}

// Returns whether Transformer Engine supports attention in the recipe
// [pytorch/attention/dot_product_attention].
constexpr bool multiplies_attention(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp8_delayed || precision == Precision::mxfp8;
}

template <>
inline constexpr std::array<Spelling<Precision>, precisions.size()> spellings<Precision>{{
    {Precision::bf16, precisions[0].name},
    {Precision::fp8, precisions[1].name},
    {Precision::fp8_delayed, precisions[2].name},
    {Precision::fp8_blockwise, precisions[3].name},
    {Precision::mxfp8, precisions[4].name},
    {Precision::nvfp4, precisions[5].name},
}};

// Other names of the recipes.
template <>
inline constexpr std::array<Spelling<Precision>, 4> other_spellings<Precision>{{
    {Precision::fp8, "fp8_current"},
    {Precision::fp8, "tensorwise"},
    {Precision::fp8_delayed, "delayed"},
    {Precision::fp8_blockwise, "blockwise"},
}};

}  // namespace headroom
