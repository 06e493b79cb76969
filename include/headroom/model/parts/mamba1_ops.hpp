// Rows of a Mamba-1 mixer between its normalization and its residual add [huggingface/transformers,
// models/jamba/modeling_jamba.py, JambaMambaMixer.cuda_kernels_forward; state-spaces/mamba,
// ops/selective_scan_interface.py, SelectiveScanFn]:
//
//   in_proj  [to_batch_first]  convolution  x_proj  dt_proj  selective_scan  [from_batch_first]  out_proj
//
// in_proj computes x and z. A causal convolution of x is read by x_proj, which computes the latent steps, B and
// C of each token. dt_proj computes the steps of all channels. selective_scan saves the convolved x, steps, B,
// C, z, its output before the gate, and the states at chunks of 2,048 tokens in FP32. TP ranks divide
// channels: x_proj's products are summed over them. CP ranks exchange tokens for channels around the
// convolution and the scan.
#pragma once

#include "headroom/model/op_builder.hpp"

namespace headroom {

inline constexpr std::int64_t selective_chunk = 2048;  // tokens [csrc/selective_scan/selective_scan.cpp]

constexpr ValueId mixer_ops(OpBuilder& layer, const Mamba1& sizes, ValueId input) {
  using namespace symbols;
  const auto value = [&](std::string_view name, const Monomial& elements, Dtype of = Dtype::half) {
    return layer.table.value({name, elements, of, Placement::split});
  };
  const auto divided = [](const Monomial& count) { return Amount{count, Placement::split}; };

  ValueId both = value("x and z", 2 * s * b * H);
  layer.linear("in_proj", input, {both}, {OpBuilder::of_tokens({h, Placement::whole}, {divided(2 * H)})}, {});
  Op copy{.name = "to_batch_first", .kind = OpKind::copy, .region = Placement::split};
  if (!layer.one_sequence) {
    copy.inputs = {both};
    both = layer.transposed(both);
    copy.outputs = {both};
    layer.table.op(copy);
  }
  const ValueId x = value("convolved x", s * b * H);
  const std::int64_t rw = 2 * size_of(Dtype::half);
  const std::int64_t taps = sizes.conv_width + 1;  // with a bias
  layer.table.op({.name = "convolution",
                  .region = Placement::split,
                  .inputs = {both},
                  .outputs = {x},
                  .saves = {{both, why::input_gradient}},
                  .parameters = {divided(taps * H)},
                  .traffic = {{"convolution", s * b * H, Placement::split, rw, rw + rw / 2}}});

  const ValueId latent = layer.table.value({"latent steps, B and C", s * b * G});
  const ValueId states = layer.table.value({"B and C", 2 * s * b * S});
  layer.linear("x_proj", x, {latent, states},
               {OpBuilder::of_tokens(divided(H), {{G, Placement::whole}, {2 * S, Placement::whole}})}, {});
  const ValueId steps = value("steps", s * b * H);
  layer.linear("dt_proj", latent, {steps}, {OpBuilder::of_tokens({G, Placement::whole}, {divided(H)})},
               {divided(H)});

  ValueId output = value("scan output", s * b * H);
  Op scan{.name = "selective_scan",
          .kind = OpKind::scan,
          .region = Placement::split,
          .inputs = {x, steps, states, both},
          .outputs = {output},
          .saves = {{x, why::other_factor},
                    {steps, why::other_factor},
                    {states, why::other_factor},
                    {both, why::other_factor}},
          .scan = &mamba1_kernels};
  layer.keep(scan, {"output before the gate", s * b * H, Dtype::half, Placement::split}, why::other_factor);
  layer.keep(scan, {"states of chunks", 2 * s * b * H * S / selective_chunk, Dtype::fp32, Placement::split},
             why::other_factor);
  scan.parameters = {divided(H * S), divided(H)};  // A and D
  // No GEMMs: a state of S numbers of each channel decays, takes in x, and is read by C.
  scan.products = {of_chunks(H, S, 1), of_chunks(H, 1, S), of_chunks(H, S, 1)};
  scan.exchanges = {{.axis = ParallelAxis::context, .name = Conjugate::dispatch, .value = both},
                    {.axis = ParallelAxis::context, .name = Conjugate::combine, .value = output}};
  layer.table.op(scan);
  if (!layer.one_sequence) {
    copy.name = "from_batch_first";
    copy.inputs = {output};
    output = layer.transposed(output);
    copy.outputs = {output};
    layer.table.op(copy);
  }
  const ValueId projected = layer.table.value({"mixer output", s * b * h});
  layer.linear("out_proj", output, {projected}, {OpBuilder::of_tokens(divided(H), {{h, Placement::whole}})},
               {});
  return projected;
}

}  // namespace headroom
