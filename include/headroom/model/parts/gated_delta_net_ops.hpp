// Rows of gated DeltaNet between its normalization and its residual add. Megatron-Core runs them with the
// kernels of flash-linear-attention [Megatron-LM, core/ssm/gated_delta_net.py, GatedDeltaNet.forward]:
//
//   in_proj  delta_rule  delta_norm  output_gate  [from_batch_first]  out_proj
//
// in_proj computes q, k, v, z, beta and alpha side by side, which are then split into copies. delta_rule is
// the causal convolution of q, k and v, the normalization of q and k, their repetition for all heads of
// values, the decays, and the rule in chunks. Its autograd function saves q, k, v, running sums of decays,
// beta and the inverted scores of each chunk, and recomputes the states [fla, ops/gated_delta_rule/chunk.py,
// ChunkGatedDeltaRuleFunction.forward]. TP ranks divide heads. CP ranks exchange tokens for heads around it,
// whatever attention does [core/ssm/gated_delta_net/common.py, a2a_cp_to_hp].
#pragma once

#include "headroom/model/parts/delta_rule.hpp"

namespace headroom {

// Adds the normalization of the rule's output by head and its product with a function of z. Returns the
// product.
constexpr ValueId gated_delta_output(OpBuilder& layer, ValueId output, ValueId z) {
  using namespace symbols;
  const auto of_heads = [&](std::string_view name) {
    return layer.table.value({name, s * b * H * P, Dtype::half, Placement::split});
  };
  const ValueId normalized = of_heads("normalized");
  Op norm{.name = "delta_norm",
          .kind = OpKind::normalization,
          .region = Placement::split,
          .inputs = {output},
          .outputs = {normalized},
          .saves = {{output, why::input_gradient}},
          .parameters = {{P, Placement::whole}}};
  layer.keep(norm, {"deviations of heads", s * b * H, Dtype::fp32, Placement::split, Detail::exact},
             "spares a second reduction");
  layer.table.op(norm);

  ValueId gated = of_heads("gated output");
  layer.table.op({.name = "output_gate",
                  .region = Placement::split,
                  .inputs = {normalized, z},
                  .outputs = {gated},
                  .saves = {{normalized, why::other_factor}, {z, why::other_factor}}});
  if (layer.one_sequence) return gated;
  const ValueId copied = layer.transposed(gated);
  layer.table.op({.name = "from_batch_first",
                  .kind = OpKind::copy,
                  .region = Placement::split,
                  .inputs = {gated},
                  .outputs = {copied}});
  return copied;
}

constexpr ValueId mixer_ops(OpBuilder& layer, const GatedDeltaNet& sizes, ValueId input) {
  using namespace symbols;
  const auto value = [&](std::string_view name, const Monomial& elements, Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, Placement::split});
  };
  const auto divided = [](const Monomial& count) { return Amount{count, Placement::split}; };

  const FixedVector<ValueId, 4> parts{value("q and k", 2 * s * b * G * S),
                                      value("v and z", 2 * s * b * H * P),
                                      value("beta and alpha", 2 * s * b * H)};
  layer.linear(
      "in_proj", input, {parts[0], parts[1], parts[2]},
      {OpBuilder::of_tokens({h, Placement::whole}, {divided(2 * G * S), divided(2 * H * P), divided(2 * H)})},
      {});

  const ValueId output = value("output of the rule", s * b * H * P);
  const ValueId z = value("z", s * b * H * P);
  Op rule{.name = "delta_rule",
          .kind = OpKind::scan,
          .region = Placement::split,
          .inputs = parts,
          .outputs = {output, z},
          .scan = &gated_delta_kernels};
  const auto keep = [&](std::string_view name, const Monomial& elements, Dtype of, std::string_view why) {
    layer.keep(rule, {name, elements, of, Placement::split}, why);
  };
  const std::int64_t repeats = sizes.key_heads > 0 ? sizes.heads / sizes.key_heads : 1;
  if (repeats > 1) {
    keep("q and k before and after the convolution", 4 * s * b * G * S, Dtype::half, why::input_gradient);
  } else {
    keep("q and k before the convolution", 2 * s * b * G * S, Dtype::half, why::input_gradient);
  }
  keep("v before and after the convolution", 2 * s * b * H * P, Dtype::half, why::input_gradient);
  keep("q and k of heads", 2 * s * b * H * S, Dtype::half, why::other_factor);
  keep("running sums, inputs and steps of decays", 3 * s * b * H, Dtype::fp32, why::input_gradient);
  keep("betas", s * b * H, Dtype::half, why::other_factor);
  keep("inverted scores in chunks", delta_chunk * s * b * H, Dtype::half, why::other_factor);
  rule.parameters = {divided(2 * sizes.conv_width * G * S), divided(sizes.conv_width * H * P),
                     divided(2 * H)};
  rule.products = delta_products(S);
  for (const ValueId part : parts) {
    rule.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = part});
  }
  rule.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::combine, .value = output});
  // q and k are copied before and after the convolution, normalized and repeated; v is copied twice, z once.
  const std::int64_t rw = 2 * size_of(Dtype::half);
  const std::int64_t repeated = repeats > 1 ? size_of(Dtype::half) * (1 + repeats) : 0;
  rule.traffic = {{"copies of q and k", 2 * s * b * G * S, Placement::split, 3 * rw + repeated,
                   3 * rw + repeated, repeats > 1 ? 7 : 5, repeats > 1 ? 7 : 5},
                  {"copies of v and z", s * b * H * P, Placement::split, 3 * rw, 3 * rw, 2, 2}};
  rule.temporaries = {value("states of chunks and gradients", 2 * s * b * H * S * P / delta_chunk),
                      value("w, and gradients of w, q and k", 5 * s * b * H * S),
                      value("u, new values and gradients", 3 * s * b * H * P)};
  layer.table.op(rule);

  const ValueId gated = gated_delta_output(layer, output, z);
  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("out_proj", gated, {projected},
               {OpBuilder::of_tokens(divided(H * P), {{h, Placement::whole}})}, {});
  return projected;
}

}  // namespace headroom
