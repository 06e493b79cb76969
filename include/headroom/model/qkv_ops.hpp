// Rows that compute q, k and v from the normalized tokens: projections, normalizations, positions, copies.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

struct Qkv {
  ValueId q, k, v;
  Monomial value_size = symbols::e;  // of one head of v
  ValueId gate = nowhere;            // of the output
};

constexpr Qkv qkv(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const bool in_one = layer.arch.kernels.qkv.value_or(QkvLinear::one) == QkvLinear::one;
  const int buffer = in_one ? 0 : nowhere;
  const auto part = [&](std::string_view name, const Monomial& elements, Placement placement) {
    return layer.table.value({.name = name, .elements = elements, .placement = placement, .buffer = buffer});
  };
  const bool gated = layer.arch.attention_gate;
  Qkv result{part("q", s * b * a * e, Placement::split), part("k", s * b * k * e, Placement::kv_split),
             part("v", s * b * k * e, Placement::kv_split)};
  FixedVector<Amount, 4> biases;
  if (layer.arch.qkv_bias) biases = {{a * e, Placement::split}, {2 * k * e, Placement::kv_split}};
  const auto linear_to = [](const OuterExtents& outer) {
    return OpBuilder::of_tokens({h, Placement::whole}, outer);
  };
  const Amount query{(gated ? 2 : 1) * a * e, Placement::split};
  const Amount key{k * e, Placement::kv_split};
  FixedVector<MatrixProduct, 3> products;
  if (in_one) {
    products = {linear_to({query, {2 * k * e, Placement::kv_split}})};
  } else {
    products = {linear_to({query}), linear_to({key}), linear_to({key})};
  }
  Outputs outputs{result.q, result.k, result.v};
  if (gated) {
    result.gate = part("output gate", s * b * a * e, Placement::split);
    outputs.push_back(result.gate);
  }
  layer.linear("qkv", input, outputs, products, biases, static_cast<int>(products.size()));
  return result;
}

// Adds the normalization of q and k, before positions.
constexpr Qkv qk_norm(OpBuilder& layer, const Qkv& in) {
  using namespace symbols;
  const QkNorm kind = layer.arch.qk_norm;
  const Dtype statistics = layer.arch.kernels.norm_statistics;
  const Qkv out{.q = layer.table.value({"normalized q", s * b * a * e, Dtype::half, Placement::split}),
                .k = layer.table.value({"normalized k", s * b * k * e, Dtype::half, Placement::kv_split}),
                .v = in.v,
                .gate = in.gate};
  Op op{.name = "qk_norm",
        .kind = OpKind::normalization,
        .region = Placement::split,
        .inputs = {in.q, in.k},
        .outputs = {out.q, out.k}};
  if (layer.arch.kernels.normalization.value_or(NormKernel::fused) == NormKernel::fused) {
    op.saves = {{in.q, why::input_gradient}, {in.k, why::input_gradient}};
  } else {
    layer.keep_chain(op, s * b * a * e, Placement::split);
    layer.keep_chain(op, s * b * k * e, Placement::kv_split);
    op.operators = norm_operators + norm_operators;
  }
  const bool full = kind == QkNorm::full;
  layer.keep(op,
             {"deviations of q", full ? s * b : s * b * a, statistics,
              full ? Placement::whole : Placement::split, Detail::exact},
             "spares a second reduction");
  layer.keep(op,
             {"deviations of k", full ? s * b : s * b * k, statistics,
              full ? Placement::whole : Placement::kv_split, Detail::exact},
             "spares a second reduction");
  if (kind == QkNorm::per_head) op.parameters = {{2 * e, Placement::whole}};
  if (full) op.parameters = {{a * e, Placement::split}, {k * e, Placement::kv_split}};
  layer.table.op(op);
  return out;
}

// Adds the rotation of q and k, which makes new tensors. All layers share the tables of sines and cosines.
constexpr Qkv rotary(OpBuilder& layer, const Qkv& in) {
  using namespace symbols;
  const Qkv out{.q = layer.table.value({"rotated q", s * b * a * e, Dtype::half, Placement::split}),
                .k = layer.table.value({"rotated k", s * b * k * e, Dtype::half, Placement::kv_split}),
                .v = in.v,
                .gate = in.gate};
  Op op{.name = "rotary", .region = Placement::split, .inputs = {in.q, in.k}, .outputs = {out.q, out.k}};
  const RotaryKernel kernel = layer.arch.kernels.rotary.value_or(RotaryKernel::fused);
  if (kernel != RotaryKernel::fused) {
    op.unfused = true;
    op.traffic = {rotary_chain(kernel, op.name, s * b * a * e, Placement::split),
                  rotary_chain(kernel, op.name, s * b * k * e, Placement::kv_split)};
  }
  if (kernel == RotaryKernel::rotate_chunks) {  // of q and of k
    layer.keep(op, {"cosines and sines", 4 * s * e, Dtype::half, Placement::whole, Detail::exact},
               why::other_factor);
    op.operators = table_operators + table_operators;
  }
  layer.table.op(op);
  return out;
}

// Adds copies of k < a key/value heads, so that each query head has its own.
constexpr Qkv repeat_kv(OpBuilder& layer, const Qkv& in) {
  using namespace symbols;
  const Qkv out{.q = in.q,
                .k = layer.table.value({"repeated k", s * b * a * e, Dtype::half, Placement::split}),
                .v = layer.table.value({"repeated v", s * b * a * e, Dtype::half, Placement::split}),
                .gate = in.gate};
  const ValueId index =
      layer.table.value({"head indices", 2 * a, Dtype::int64, Placement::split, Detail::exact});
  layer.table.op({.name = "repeat_kv",
                  .kind = OpKind::copy,
                  .region = Placement::split,
                  .core_attention = true,
                  .inputs = {in.k, in.v},
                  .outputs = {out.k, out.v, index},
                  .saves = {{index, "tells which head each copy came from"}}});
  return out;
}

// Adds q, k and v of latent attention, as Megatron-Core computes them
// [core/transformer/multi_latent_attention.py]. Every rank holds the down-projections whole and applies them
// to its own tokens. Latents are gathered before the up-projections. Training computes k and v of every head;
// no projection is absorbed.
//
//   [q_down  q_latent_norm]  q_up  kv_down  kv_latent_norm  kv_up  mla_rotary
constexpr Qkv latent_qkv(OpBuilder& layer, ValueId input) {
  using namespace symbols;
  const auto of_heads = [&](std::string_view name, const Monomial& size) {
    return layer.table.value({name, s * b * a * size, Dtype::half, Placement::split});
  };
  const bool low_rank_q = layer.arch.latent_attention->q_rank > 0;
  ValueId from = input;
  if (low_rank_q) {
    const ValueId latent = layer.table.value({"q latent", s * b * R});
    layer.repeated_linear("q_down", input, {latent}, {{R, Placement::whole}});
    from = layer.norm("q_latent_norm", latent, R);
  }
  const ValueId q = of_heads("q", e);
  layer.linear("q_up", from, {q},
               {OpBuilder::of_tokens({low_rank_q ? R : h, Placement::whole}, {{a * e, Placement::split}})},
               {});

  // Two views into one output. Saving the latent keeps the rotary part of k allocated too.
  const auto part = [&](std::string_view name, const Monomial& size) {
    return layer.table.value({.name = name, .elements = s * b * size, .buffer = 0});
  };
  const ValueId latent = part("kv latent", w);
  const ValueId shared = part("shared rotary k", j);
  layer.repeated_linear("kv_down", input, {latent, shared}, {{w, Placement::whole}, {j, Placement::whole}});
  const ValueId normalized = layer.norm("kv_latent_norm", latent, w);
  const ValueId plain = of_heads("k without positions", i);
  const ValueId values = of_heads("projected v", l);
  layer.linear(
      "kv_up", normalized, {plain, values},
      {OpBuilder::of_tokens({w, Placement::whole}, {{a * i, Placement::split}, {a * l, Placement::split}})},
      {});

  const Qkv out{of_heads("rotated q", e), of_heads("k", e), of_heads("v", l), l};
  Op op{.name = "mla_rotary",
        .region = Placement::split,
        .inputs = {q, plain, shared, values},
        .outputs = {out.q, out.k, out.v}};
  const RotaryKernel kernel = layer.arch.kernels.rotary.value_or(RotaryKernel::fused);
  if (kernel != RotaryKernel::fused)  // the parts are put together afterwards
    op.traffic = {rotary_chain(kernel, op.name, s * b * a * j, Placement::split)};
  layer.table.op(op);
  return out;
}

}  // namespace headroom
