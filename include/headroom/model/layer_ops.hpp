// The op table of one transformer layer: a row per op, and under it a line per stored tensor, to be laid
// beside K22 section 4.1. With the default Architecture it is the paper's layer.
//
//   norm_1  qkv  [rotary]  core attention  projection  residual_1
//   norm_2  mlp_up  activation  mlp_down  residual_2        or, of a mixture of experts, the rows of expert_ops.hpp
#pragma once

#include "headroom/model/attention_ops.hpp"
#include "headroom/model/expert_ops.hpp"

namespace headroom {

constexpr OpTable layer_ops(const Architecture& architecture, bool one_sequence = false) {
  using namespace symbols;
  OpBuilder layer{.arch = architecture, .one_sequence = one_sequence};
  const ValueId input = layer.table.value({"layer input", s * b * h, architecture.kernels.residual_dtype});
  const ValueId attended = attention(layer, layer.norm("norm_1", input));
  const ValueId middle = layer.residual("residual_1", attended, input);
  const ValueId normalized = layer.norm("norm_2", middle);
  const ValueId expanded = architecture.experts ? mixture(layer, normalized) : mlp(layer, normalized);
  layer.residual("residual_2", expanded, middle);
  return layer.table;
}

// Of the layer that a Transformer or a LayerDescription describes, whose sizes may leave some rows without work: where each
// query head has a key/value head of its own, none is repeated, and the only sequence of a microbatch comes first.
template <class Layer>
constexpr OpTable layer_ops(const Layer& layer, std::int64_t micro_batch) {
  Architecture architecture = layer.architecture;
  if (layer.key_value_heads == layer.heads) architecture.kernels.kv_sharing = KvSharing::grouped;
  return layer_ops(architecture, micro_batch == 1);
}

}  // namespace headroom
