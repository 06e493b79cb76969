// Rows of Kimi Delta Attention between its normalization and its residual add. Megatron-Core runs them with
// the kernels of flash-linear-attention [Megatron-LM, core/ssm/gated_delta_net/kda.py, KimiDeltaAttention]:
//
//   qkv  f_a_proj  f_b_proj  g_a_proj  g_b_proj  b_proj  delta_rule  delta_norm  output_gate
//   [from_batch_first]  projection
//
// f_a_proj and f_b_proj compute a decay for each channel, g_a_proj and g_b_proj the output gate. Both go
// through as many channels as a head has. b_proj computes beta. Every rank has f_a_proj, g_a_proj and b_proj
// whole and runs them on its own tokens. delta_rule saves q, k and v, decays before their activation, beta,
// and two matrices of scores of each chunk. It recomputes decays and states [fla, ops/kda/chunk.py,
// ChunkKDAFunction.forward with disable_recompute false]. CP ranks exchange tokens for heads around it
// [kda.py, linear_cp_mode headwise].
#pragma once

#include "headroom/model/parts/gated_delta_net_ops.hpp"

namespace headroom {

constexpr ValueId mixer_ops(OpBuilder& layer, const KimiDelta& sizes, ValueId input) {
  using namespace symbols;
  const auto value = [&](std::string_view name, const Monomial& elements, Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, Placement::split});
  };
  const Amount inner{H * P, Placement::split};

  const FixedVector<ValueId, 4> qkv{value("q", s * b * H * P), value("k", s * b * H * P),
                                    value("v", s * b * H * P)};
  layer.linear("qkv", input, {qkv[0], qkv[1], qkv[2]},
               {OpBuilder::of_tokens({h, Placement::whole}, {inner, inner, inner})}, {});
  const auto through_rank = [&](std::string_view down, std::string_view up, std::string_view name) {
    const ValueId latent = layer.table.value({"latent", s * b * P});
    layer.repeated_linear(down, input, {latent}, {{P, Placement::whole}});
    const ValueId made = value(name, s * b * H * P);
    layer.linear(up, latent, {made}, {OpBuilder::of_tokens({P, Placement::whole}, {inner})}, {});
    return made;
  };
  const ValueId decays = through_rank("f_a_proj", "f_b_proj", "decays");
  const ValueId gate = through_rank("g_a_proj", "g_b_proj", "output gate");
  const ValueId beta = layer.table.value({"beta", s * b * H});
  layer.repeated_linear("b_proj", input, {beta}, {{H, Placement::whole}});

  const ValueId output = value("output of the rule", s * b * H * P);
  const ValueId together = value("q, k and v", 3 * s * b * H * P);
  Op pack{.name = "pack_qkv",
          .kind = OpKind::copy,
          .region = Placement::split,
          .inputs = qkv,
          .outputs = {together}};
  layer.table.op(pack);
  Op rule{.name = "delta_rule",
          .kind = OpKind::scan,
          .region = Placement::split,
          .inputs = {together, decays, beta},
          .outputs = {output},
          .saves = {{together, why::input_gradient}, {decays, why::input_gradient}},
          .scan = &kimi_delta_kernels};
  const auto keep = [&](std::string_view name, const Monomial& elements, Dtype of, std::string_view why) {
    layer.keep(rule, {name, elements, of, Placement::split}, why);
  };
  keep("convolved q, k and v", 3 * s * b * H * P, Dtype::half, why::other_factor);
  keep("betas", s * b * H, Dtype::fp32, why::other_factor);
  keep("scores in chunks", 2 * delta_chunk * s * b * H, Dtype::half, why::other_factor);
  // Three convolutions, A by head, and the bias of decays.
  rule.parameters = {{3 * sizes.conv_width * H * P, Placement::split}, {H, Placement::split}, inner};
  rule.products = delta_products(P);
  for (const ValueId part : {together, decays, gate, beta}) {
    rule.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = part});
  }
  rule.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::combine, .value = output});
  // Copies after the convolution, and the normalization of q and k.
  const std::int64_t rw = 2 * size_of(Dtype::half);
  rule.traffic = {{"copies of q, k and v", 3 * s * b * H * P, Placement::split, rw, rw, 3, 3},
                  {"normalization of q and k", 2 * s * b * H * P, Placement::split, rw, rw + rw / 2, 2, 2}};
  rule.temporaries = {value("states of chunks and gradients", 2 * s * b * H * P * P / delta_chunk),
                      value("decays, and gradients of decays, q and k", 4 * s * b * H * P, Dtype::fp32),
                      value("w, u, decayed keys, new values and gradients", 5 * s * b * H * P),
                      value("gradients of scores", 2 * delta_chunk * s * b * H, Dtype::fp32)};
  layer.table.op(rule);

  const ValueId gated = gated_delta_output(layer, output, gate);
  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("projection", gated, {projected}, {OpBuilder::of_tokens(inner, {{h, Placement::whole}})}, {});
  return projected;
}

}  // namespace headroom
