// Applies a precision to the op table of a layer, once, before anything reads it: the dtype of GEMMs, the
// dtype of their saved inputs, and what stays at 16 bits.
//
//   narrow        the GEMMs of all linears of layers and of their experts, forward and backward; what they
//                 save of their inputs: one copy, for the GEMM with the output's gradient
//   at 16 bits    the residual stream, the inputs of normalizations and of activations, q, k, v and the
//                 context; embedding, output layer, router, and the GEMMs of attention; weight gradients
//   by its scope  attention and the output layer may be narrow too; layers at either end of the model,
//                 or some linears of all layers, may be at 16 bits
//
// A copy is a separate tensor. If something else saves its original, both exist: the context takes 2 + 1
// bytes. The op that makes the original also makes the copy, and recomputation makes both: recomputing the
// activation makes the copy that mlp_down saves. [Transformer Engine, pytorch/module/linear.py,
// layernorm_linear.py, grouped_linear.py, as Megatron-LM uses them]
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/op_builder.hpp"
#include "headroom/model/precision.hpp"

namespace headroom {

// Returns whether an op is a linear of one of the modules.
constexpr bool is_among(const PrecisionModules& modules, const Op& op) {
  if (op.kind != OpKind::linear) return false;
  for (const PrecisionModuleRow& row : precision_modules) {
    if (!modules.contains(row.module)) continue;
    for (std::string_view rest = row.ops; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (rest.substr(0, end) == op.name) return true;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return false;
}

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

// Returns the table with its linears, and the copies that they save, in the precision.
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

}  // namespace headroom
