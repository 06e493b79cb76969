// Rows of self-attention between its normalization and its residual add: those that compute q, k and v
// (qkv_ops.hpp), core attention in one of its kernels, and the output projection.
#pragma once

#include "headroom/model/qkv_ops.hpp"

namespace headroom {

// Returns the GEMM [s x inner] [inner x outer] for every head of every sequence.
constexpr MatrixProduct of_heads(const Monomial& inner, const Monomial& outer) {
  using namespace symbols;
  return {.batch = {b * a, Placement::split},
          .rows = {s, Placement::whole},
          .inner = {inner, Placement::whole},
          .outer = {{outer, Placement::whole}}};
}

// Adds QK^T, softmax, dropout and the product with V as separate ops. Returns the context.
constexpr ValueId unfused_attention(OpBuilder& layer, Qkv in) {
  using namespace symbols;
  const Kernels& kernels = layer.arch.kernels;
  const Dtype softmax_dtype = kernels.softmax_dtype.value_or(Dtype::half);
  const auto scores_shaped = [&](std::string_view name, Dtype dtype) {
    return layer.table.value({name, a * s * s * b, dtype, Placement::split});
  };
  const auto core = [](std::string_view name, OpKind kind) {
    return Op{.name = name, .kind = kind, .region = Placement::split, .core_attention = true};
  };

  if (kernels.attention == AttentionKernel::sdpa_math) {
    Op scale = core("scale_q", OpKind::elementwise);
    scale.inputs = {in.q};
    in.q = layer.table.value({"scaled q", s * b * a * e, Dtype::half, Placement::split});
    scale.outputs = {in.q};
    layer.table.op(scale);
  }

  Op scores = core("scores", OpKind::batched_matmul);
  ValueId raw = scores_shaped("scores", Dtype::half);
  scores.inputs = {in.q, in.k};
  scores.outputs = {raw};
  scores.saves = {{in.q, why::other_factor}, {in.k, why::other_factor}};
  scores.products = {of_heads(e, s)};
  if (layer.arch.positions == Positions::alibi) {
    // The biases are written to the scores' buffer, and the GEMM adds to them.
    scores.traffic = {{"alibi", a * s * s * b, Placement::split, 2 * size_of(layer.table[raw].dtype), 0}};
  }
  layer.table.op(scores);

  if (layer.arch.attention_softcap) {
    Op softcap = core("attention_softcap", OpKind::elementwise);
    softcap.inputs = {raw};
    raw = scores_shaped("capped scores", Dtype::half);
    softcap.outputs = {raw};
    softcap.saves = {{raw, why::input_gradient}};
    layer.table.op(softcap);
  }

  Op softmax = core("softmax", OpKind::softmax);
  ValueId weights = scores_shaped("attention weights", softmax_dtype);
  softmax.inputs = {raw};
  softmax.outputs = {weights};
  softmax.saves = {{weights, why::input_gradient}};
  if (!is_half(softmax_dtype)) {
    weights = scores_shaped("half-precision weights", Dtype::half);
    softmax.outputs.push_back(weights);
  }
  if (kernels.softmax == Fusion::fused && kernels.attention == AttentionKernel::unfused) {
    const ValueId scale = layer.table.value({"scale", 1, Dtype::fp32, Placement::whole, Detail::exact});
    softmax.outputs.push_back(scale);
    softmax.saves.push_back({scale, why::input_gradient});
  }
  if (layer.arch.attention_sinks) {
    softmax.parameters = {{a, Placement::split}};
    layer.keep(softmax, {"sinks' column", a * s * b, softmax_dtype, Placement::split, Detail::exact},
               why::input_gradient);
  }
  layer.table.op(softmax);

  if (layer.arch.attention_dropout) {
    Op dropout = core("softmax_dropout", OpKind::elementwise);
    const ValueId mask = scores_shaped("dropout mask", kernels.dropout_mask);
    const ValueId dropped = scores_shaped("dropped weights", Dtype::half);
    dropout.inputs = {weights};
    dropout.outputs = {mask, dropped};
    dropout.saves = {{mask, why::mask}};
    layer.table.op(dropout);
    weights = dropped;
  }

  Op context = core("context", OpKind::batched_matmul);
  const ValueId output =
      layer.table.value({"context", s * b * a * in.value_size, Dtype::half, Placement::split});
  context.inputs = {weights, in.v};
  context.outputs = {output};
  context.saves = {{weights, why::other_factor}, {in.v, why::other_factor}};
  context.products = {of_heads(s, in.value_size)};
  // The GEMM writes one head after another. The projection reads them side by side.
  const std::int64_t copied = 2 * size_of(layer.table[output].dtype);
  context.traffic = {{"merge_heads", s * b * a * in.value_size, Placement::split, copied, copied}};
  layer.table.op(context);
  return output;
}

constexpr ValueId flash_attention(OpBuilder& layer, Qkv in) {
  using namespace symbols;
  const bool batch_first = layer.arch.kernels.layout == AttentionLayout::batch_first;
  Op copy{.name = "to_batch_first", .kind = OpKind::copy, .region = Placement::split, .core_attention = true};
  if (batch_first) {
    for (ValueId* const part : {&in.q, &in.k, &in.v}) {
      // With one sequence, only a view into a wider allocation is copied.
      if (layer.one_sequence && layer.table[*part].buffer == nowhere) continue;
      copy.inputs.push_back(*part);
      *part = layer.transposed(*part);
      copy.outputs.push_back(*part);
    }
    if (!copy.inputs.empty()) layer.table.op(copy);
  }

  ValueId output = layer.table.value({"context", s * b * a * in.value_size, Dtype::half, Placement::split});
  const ValueId log_sum_exp = layer.table.value({"log-sum-exp", a * s * b, Dtype::fp32, Placement::split});
  Op flash{.name = "flash_attention",
           .kind = OpKind::flash_attention,
           .region = Placement::split,
           .core_attention = true,
           .inputs = {in.q, in.k, in.v},
           .outputs = {output, log_sum_exp}};
  flash.saves = {{in.q, why::other_factor},
                 {in.k, why::other_factor},
                 {in.v, why::other_factor},
                 {output, "the kernel's backward starts from it"},
                 {log_sum_exp, "normalizes the scores that the backward computes again"}};
  // Blocks outside a window are skipped, and chunks are sequences of their own.
  const Monomial keys = layer.arch.window > 0 ? o : layer.arch.attention_chunk > 0 ? C : s;
  flash.products = {of_heads(e, keys), of_heads(keys, in.value_size)};
  if (layer.arch.attention_sinks) flash.parameters = {{a, Placement::split}};
  flash.of_all_tokens = {in.k, in.v};
  if (layer.arch.attention_dropout) {
    const ValueId rng = layer.table.value({"random state", 2, Dtype::int64, Placement::whole, Detail::exact});
    flash.outputs.push_back(rng);
    flash.saves.push_back({rng, "makes the dropout mask again"});
  }
  layer.table.op(flash);

  if (batch_first && !layer.one_sequence) {
    copy.name = "from_batch_first";
    copy.inputs = {output};
    output = layer.transposed(output);
    copy.outputs = {output};
    layer.table.op(copy);
  } else if (layer.arch.kernels.copies_context) {
    const ValueId merged =
        layer.table.value({"merged heads", s * b * a * in.value_size, Dtype::half, Placement::split});
    layer.table.op({.name = "merge_heads",
                    .kind = OpKind::copy,
                    .region = Placement::split,
                    .core_attention = true,
                    .inputs = {output},
                    .outputs = {merged}});
    return merged;
  }
  return output;
}

// Adds the product of each head's context with a sigmoid of the gate projected beside its query.
constexpr ValueId gated_context(OpBuilder& layer, ValueId context, ValueId gate) {
  using namespace symbols;
  const ValueId gated = layer.table.value({"gated context", s * b * a * e, Dtype::half, Placement::split});
  layer.table.op({.name = "attention_gate",
                  .region = Placement::split,
                  .inputs = {context, gate},
                  .outputs = {gated},
                  .saves = {{context, why::other_factor}, {gate, why::other_factor}}});
  return gated;
}

constexpr ValueId attention(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const bool latent = layer.arch.latent_attention.has_value();
  Qkv heads = latent ? latent_qkv(layer, input) : qkv(layer, input);
  if (layer.arch.qk_norm != QkNorm::none) heads = qk_norm(layer, heads);
  if (layer.arch.positions == Positions::rotary && !latent) heads = rotary(layer, heads);
  if (layer.arch.kernels.kv_sharing.value_or(KvSharing::grouped) == KvSharing::repeated)
    heads = repeat_kv(layer, heads);
  ValueId context = layer.arch.kernels.attention == AttentionKernel::flash ? flash_attention(layer, heads)
                                                                           : unfused_attention(layer, heads);
  if (heads.gate != nowhere) context = gated_context(layer, context, heads.gate);
  const ValueId output = layer.table.value({"projected", s * b * h});
  layer.linear("projection", context, {output},
               {OpBuilder::of_tokens({a * heads.value_size, Placement::split}, {{h, Placement::whole}})},
               layer.row_bias());
  return output;
}

}  // namespace headroom
