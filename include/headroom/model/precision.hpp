// Precision of a model's linears: the dtype of GEMMs in its layers, the dtype of their saved inputs, and what
// stays at 16 bits. A policy rewrites the op table of a layer once, before anything reads it.
//
//   in the type   the GEMMs of all linears of layers and of their experts, forward and backward; what they
//                 save of their inputs: one copy, for the GEMM with the output's gradient
//   at 16 bits    the residual stream, the inputs of normalizations and of activations, q, k, v and the
//                 context; embedding, output layer, router, and the GEMMs of attention; weight gradients
//   by its scope  attention and the output layer may be in the type too; layers at either end of the model,
//                 or some linears of all layers, may be at 16 bits
//
// A copy is a separate tensor. If something else saves its original, both exist: the context takes 2 + 1
// bytes. The op that makes the original also makes the copy, and recomputation makes both: recomputing the
// activation makes the copy that mlp_down saves. [Transformer Engine, pytorch/module/linear.py,
// layernorm_linear.py, grouped_linear.py, as Megatron-LM uses them]
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "headroom/core/names.hpp"
#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/op_builder.hpp"
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

namespace detail {

constexpr bool can_be_narrow(const Op& op) { return op.kind == OpKind::linear && !op.always_half; }

// Returns whether a linear that stays at 16 bits saves the value.
constexpr bool kept_by_half_linear(const OpTable& table, ValueId value) {
  for (const Op& op : table.ops()) {
    if (op.kind != OpKind::linear || !op.always_half) continue;
    for (const Save& save : op.saves) {
      if (save.value == value) return true;
    }
  }
  return false;
}

}  // namespace detail

// Returns whether a linear saves its input at 16 bits and casts it again for its weight gradient. Shared
// experts do, since the router saves their input [Megatron-LM, moe/shared_experts.py,
// set_save_original_input; not with delayed scaling].
constexpr bool keeps_original(const Op& op) {
  return multiplies_narrow(op) && op.saves.size() > 0 && op.saves[0].value == op.inputs[0];
}

HEADROOM_VECTOR_CONSTEXPR OpTable with_precision(OpTable table, Precision precision) {
  const PrecisionRow& row = row_of(precision);
  if (!is_narrow(row.dtype)) return table;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (!detail::can_be_narrow(table.ops()[i])) continue;
    Op& op = table.change(i);
    for (MatrixProduct& product : op.products) product.dtype = row.dtype;
    const ValueId input = op.inputs[0];
    if (precision != Precision::fp8_delayed && detail::kept_by_half_linear(table, input)) continue;
    Value copy = table[input];
    copy.name = row.copy;
    copy.dtype = row.dtype;
    copy.buffer = nowhere;
    // An input of the layer has no op that makes it: the linear makes the copy itself.
    if (copy.producer == nowhere) copy.producer = static_cast<int>(i);
    const ValueId made = table.value(copy);
    table.change(static_cast<std::size_t>(copy.producer)).outputs.push_back(made);
    for (Save& save : op.saves) {
      if (save.value == input) save.value = made;
    }
  }
  return table;
}

// Parts of a model in its precision beside the linears of layers, and layers that are not.
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

// Returns whether Transformer Engine has attention in the recipe [pytorch/attention/dot_product_attention].
constexpr bool multiplies_attention(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::fp8_delayed || precision == Precision::mxfp8;
}

// Returns the table with flash attention in `precision`. The kernel receives 16 bits, casts queries, keys and
// values itself, and saves its own copies. With delayed scaling it also computes the context in the precision
// and saves that, beside the 16-bit context that it returns. Otherwise the context stays at 16 bits
// [pytorch/attention/dot_product_attention/backends.py].
HEADROOM_VECTOR_CONSTEXPR OpTable with_narrow_attention(OpTable table, Precision precision) {
  const PrecisionRow& row = row_of(precision);
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].kind != OpKind::flash_attention || !is_narrow(row.dtype)) continue;
    Op& op = table.change(i);
    for (MatrixProduct& product : op.products) product.dtype = row.dtype;
    for (Save& save : op.saves) {
      const bool context = save.value == op.outputs[0];
      if (!op.inputs.contains(save.value) && !(context && precision == Precision::fp8_delayed)) continue;
      Value copy = table[save.value];
      copy.name = row.copy;
      copy.dtype = row.dtype;
      copy.buffer = nowhere;
      copy.producer = static_cast<int>(i);
      save.value = table.value(copy);
      op.outputs.push_back(save.value);
    }
  }
  return table;
}

// Returns the table with the linears of the modules at 16 bits, whatever the precision.
HEADROOM_VECTOR_CONSTEXPR OpTable with_half_modules(OpTable table, const PrecisionModules& modules) {
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (is_among(modules, table.ops()[i])) table.change(i).always_half = true;
  }
  return table;
}

// Returns the table with one E5M6 copy of the context, for the backward passes of attention and of the linear
// behind it.
HEADROOM_VECTOR_CONSTEXPR OpTable with_stored_context(OpTable table) {
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (table.ops()[i].kind != OpKind::flash_attention) continue;
    const ValueId context = table.ops()[i].outputs[0];
    Value copy = table[context];
    copy.buffer = nowhere;
    const ValueId whole = table.value(copy);  // as the backward pass of attention reads it
    copy.name = "E5M6 copy";
    copy.dtype = Dtype::e5m6;
    copy.producer = static_cast<int>(i);
    const ValueId made = table.value(copy);
    Op& attention = table.change(i);
    attention.outputs.push_back(made);
    attention.temporaries.push_back(whole);
    for (Save& save : attention.saves) {
      if (save.value == context) save.value = made;
    }
    for (std::size_t j = i + 1; j < table.ops().size(); ++j) {
      const bool reads = table.ops()[j].kind == OpKind::linear && table.ops()[j].inputs[0] == context;
      if (!reads) continue;
      for (Save& save : table.change(j).saves) save.value = made;
    }
  }
  return table;
}

// Returns the table with tokens dispatched in FP8, and the gradients of the experts' output likewise. The
// experts' output and the gradients of tokens travel in 16 bits.
HEADROOM_VECTOR_CONSTEXPR OpTable with_narrow_dispatch(OpTable table) {
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    for (std::size_t j = 0; j < table.ops()[i].exchanges.size(); ++j) {
      const Exchange& sent = table.ops()[i].exchanges[j];
      if (sent.axis != ParallelAxis::expert || table[sent.value].dtype != Dtype::half) continue;
      if (sent.name != Conjugate::dispatch && sent.name != Conjugate::combine) continue;
      Exchange& changed = table.change(i).exchanges[j];
      const bool forward = changed.name == Conjugate::dispatch;
      changed.dtype = forward ? Dtype::fp8_blockwise : Dtype::half;
      changed.backward_dtype = forward ? Dtype::half : Dtype::fp8_blockwise;
    }
  }
  return table;
}

// Returns the table of a layer in the precision.
HEADROOM_VECTOR_CONSTEXPR OpTable layer_in(const OpTable& table, Precision precision,
                                           const PrecisionScope& scope) {
  OpTable linears = with_precision(with_half_modules(table, scope.bf16_modules), precision);
  if (scope.attention) linears = with_narrow_attention(std::move(linears), precision);
  return linears;
}

// Returns the table of the head with its output layer in `precision`. --fp8-param-gather does not apply to
// its weights.
HEADROOM_VECTOR_CONSTEXPR OpTable with_narrow_output_layer(OpTable table, Precision precision) {
  table = with_precision(table, precision);
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    if (multiplies_narrow(table.ops()[i])) table.change(i).weights_at_half = true;
  }
  return table;
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
