// Rows of lightning attention between its normalization and its residual add [huggingface/transformers,
// models/minimax/modeling_minimax.py, MiniMaxLightningAttention.forward]:
//
//   qkv  qkv_activation  lightning  lightning_norm  gate_linear  context_gate  [from_batch_first]  projection
//
// q, k and v go through a SiLU together. lightning takes blocks of tokens one after another: scores within a
// block, and a state of P x P numbers a head, which decays by a constant of the head, across blocks. As one
// autograd function it saves q, k and v and recomputes the states [OpenNLPLab/lightning-attention]. Its output
// is normalized over all heads and multiplied by a sigmoid of gate_linear's output. TP ranks divide heads. CP
// ranks are taken to exchange tokens for heads around it, as around the other mixers.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

constexpr ValueId mixer_ops(OpBuilder& layer, const Lightning& sizes, ValueId input) {
  using namespace symbols;
  const Monomial chunk = sizes.chunk_size;
  const auto value = [&](std::string_view name, const Monomial& elements, Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, Placement::split});
  };
  const Amount inner{H * P, Placement::split};

  const FixedVector<ValueId, 4> qkv{value("q", s * b * H * P), value("k", s * b * H * P),
                                    value("v", s * b * H * P)};
  layer.linear("qkv", input, {qkv[0], qkv[1], qkv[2]},
               {OpBuilder::of_tokens({h, Placement::whole}, {inner, inner, inner})}, {});
  const ValueId active = value("activated q, k and v", 3 * s * b * H * P);
  Op activation{.name = "qkv_activation", .region = Placement::split, .inputs = qkv, .outputs = {active}};
  for (const ValueId part : qkv) activation.saves.push_back({part, why::input_gradient});
  layer.table.op(activation);

  const ValueId output = value("context", s * b * H * P);
  Op scan{.name = "lightning",
          .kind = OpKind::scan,
          .region = Placement::split,
          .inputs = {active},
          .outputs = {output},
          .saves = {{active, why::other_factor}},
          .scan = &lightning_kernels};
  // Scores in a block; states from k and v, and outputs from q and a state; outputs from v in a block. Causal
  // scores are counted in full.
  scan.products = {of_chunks(H, P, chunk), of_chunks(2 * H, P, P), of_chunks(H, chunk, P)};
  scan.exchanges = {{.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = active},
                    {.axis = ParallelAxis::context, .name = Conjugate::combine, .value = output}};
  scan.temporaries = {value("states and gradients", 2 * s * b * H * P * P / chunk, Dtype::fp32)};
  layer.table.op(scan);

  const ValueId normalized = value("normalized context", s * b * H * P);
  Op norm{.name = "lightning_norm",
          .kind = OpKind::normalization,
          .region = Placement::split,
          .inputs = {output},
          .outputs = {normalized},
          .saves = {{output, why::input_gradient}},
          .parameters = {inner}};
  layer.keep(norm, {"deviation", s * b, Dtype::fp32, Placement::whole, Detail::exact},
             "spares a second reduction");
  layer.table.op(norm);

  const ValueId gate = value("output gate", s * b * H * P);
  layer.linear("gate_linear", input, {gate}, {OpBuilder::of_tokens({h, Placement::whole}, {inner})}, {});
  ValueId gated = value("gated context", s * b * H * P);
  layer.table.op({.name = "context_gate",
                  .region = Placement::split,
                  .inputs = {normalized, gate},
                  .outputs = {gated},
                  .saves = {{normalized, why::other_factor}, {gate, why::other_factor}}});
  if (!layer.one_sequence) {
    const ValueId copied = layer.transposed(gated);
    layer.table.op({.name = "from_batch_first",
                    .kind = OpKind::copy,
                    .region = Placement::split,
                    .inputs = {gated},
                    .outputs = {copied}});
    gated = copied;
  }
  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("projection", gated, {projected}, {OpBuilder::of_tokens(inner, {{h, Placement::whole}})}, {});
  return projected;
}

}  // namespace headroom
