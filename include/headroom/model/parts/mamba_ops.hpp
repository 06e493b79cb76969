// Rows of a Mamba-2 mixer between its normalization and its residual add. Megatron-Core runs them with the
// fused kernels of mamba_ssm [Megatron-LM, core/ssm/mamba_mixer.py; state-spaces/mamba,
// ops/triton/ssd_combined.py]:
//
//   in_proj  [to_batch_first]  mamba_scan  [from_batch_first]  mamba_norm  out_proj
//
// in_proj computes z, x, B, C and dt side by side. mamba_scan is one autograd function: a causal convolution
// of x, B and C, the scan in chunks, and the product with silu(z). It saves its inputs and its output before
// that product. Its backward pass recomputes the convolution and the states of the chunks. TP ranks divide
// heads and groups. CP ranks exchange tokens for heads around it, whatever attention does
// [core/ssm/mamba_context_parallel.py].
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

constexpr ValueId mixer_ops(OpBuilder& layer, const Mamba& sizes, ValueId input) {
  using namespace symbols;
  const Monomial chunk = sizes.chunk_size;
  const auto value = [&](std::string_view name, const Monomial& elements, Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, Placement::split});
  };
  const auto divided = [](const Monomial& count) { return Amount{count, Placement::split}; };

  FixedVector<ValueId, 4> parts{value("z and x", 2 * s * b * H * P), value("B and C", 2 * s * b * G * S),
                                value("dt", s * b * H)};
  layer.linear(
      "in_proj", input, {parts[0], parts[1], parts[2]},
      {OpBuilder::of_tokens({h, Placement::whole}, {divided(2 * H * P), divided(2 * G * S), divided(H)})},
      {});
  Op copy{.name = "to_batch_first", .kind = OpKind::copy, .region = Placement::split};
  if (!layer.one_sequence) {
    for (ValueId& part : parts) {
      copy.inputs.push_back(part);
      part = layer.transposed(part);
      copy.outputs.push_back(part);
    }
    layer.table.op(copy);
  }

  Op scan{.name = "mamba_scan",
          .kind = OpKind::scan,
          .region = Placement::split,
          .inputs = parts,
          .scan = &mamba_kernels};
  ValueId output = value("scan output", s * b * H * P);
  scan.outputs = {output};
  for (const ValueId part : parts) scan.saves.push_back({part, "the backward pass starts from it"});
  layer.keep(scan, {"output before the gate", s * b * H * P, Dtype::half, Placement::split},
             why::other_factor);
  layer.keep(scan, {"A, exp A and dt bias", 3 * H, Dtype::fp32, Placement::split, Detail::exact},
             why::other_factor);
  const std::int64_t taps = sizes.conv_width + 1;  // with a bias
  scan.parameters = {divided(taps * H * P), divided(2 * taps * G * S), divided(3 * H)};
  // GEMMs: C with B in a chunk; states of chunks from x and B, and outputs from C and the states; outputs
  // from x in a chunk. Their causal scores are counted in full.
  scan.products = {of_chunks(G, S, chunk), of_chunks(2 * H, S, P), of_chunks(H, chunk, P)};
  for (const ValueId part : parts) {
    scan.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = part});
  }
  scan.exchanges.push_back({.axis = ParallelAxis::context, .name = Conjugate::combine, .value = output});
  // States of chunks and their gradients in FP32, before they are rounded to 16 bits; C with B; x, B and C
  // after the convolution, their gradients, and the gradient before the gate.
  scan.temporaries = {value("states of chunks and gradients", 3 * s * b * H * P * S / chunk, Dtype::fp32),
                      value("scores in chunks", s * b * G * chunk, Dtype::fp32),
                      value("convolved x and gradients", 3 * s * b * H * P),
                      value("convolved B, C and gradients", 4 * s * b * G * S)};
  layer.table.op(scan);
  if (!layer.one_sequence) {
    copy.name = "from_batch_first";
    copy.inputs = {output};
    output = layer.transposed(output);
    copy.outputs = {output};
    layer.table.op(copy);
  }

  const ValueId normalized = value("normalized", s * b * H * P);
  Op norm{.name = "mamba_norm",
          .kind = OpKind::normalization,
          .region = Placement::split,
          .inputs = {output},
          .outputs = {normalized},
          .saves = {{output, why::input_gradient}},
          .parameters = {divided(H * P)}};
  layer.keep(norm, {"deviations of groups", s * b * G, Dtype::fp32, Placement::split, Detail::exact},
             "spares a second reduction");
  layer.table.op(norm);

  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("out_proj", normalized, {projected},
               {OpBuilder::of_tokens(divided(H * P), {{h, Placement::whole}})}, {});
  return projected;
}

}  // namespace headroom
