// The op table of one transformer layer: a row per op, and under it a line per stored tensor, to be laid
// beside K22 section 4.1. With the default Architecture it is the paper's layer.
//
//   norm_1  qkv  [qk_norm]  [rotary]  core attention  projection  [post_norm_1]  residual_1
//   norm_2  mlp_up  activation  mlp_down  [post_norm_2]  residual_2
//
// or, of latent attention, its rows in qkv_ops.hpp, of another mixer those of parts/, and of a mixture of
// experts those of expert_ops.hpp. A layer of one part has the rows of one line, to the residual add. Where
// attention and MLP are parallel, both read the layer's input and both are added to it: one's sum is the
// other's stream.
#pragma once

#include "headroom/core/vector_constexpr.hpp"
#include "headroom/model/attention_ops.hpp"
#include "headroom/model/expert_ops.hpp"
#include "headroom/model/parts/kimi_delta_ops.hpp"
#include "headroom/model/parts/lightning_ops.hpp"
#include "headroom/model/parts/mamba1_ops.hpp"
#include "headroom/model/parts/mamba_ops.hpp"
#include "headroom/model/parts/short_conv_ops.hpp"

namespace headroom {

// Adds the rows of attention, or of the mixer that replaces it.
constexpr ValueId mix(OpBuilder& layer, ValueId input) {
  const Mixers& mixers = layer.arch.mixers;
  if (!has_mixer(mixers)) return attention(layer, input);
  ValueId mixed = nowhere;
  with_mixer(mixers, [&](const auto&, const auto& sizes) { mixed = mixer_ops(layer, sizes, input); });
  return mixed;
}

HEADROOM_VECTOR_CONSTEXPR OpTable layer_ops(const Architecture& architecture, bool one_sequence = false,
                                            Dispatcher dispatcher = Dispatcher::alltoall,
                                            bool pads_rows = false, bool pads_to_capacity = false) {
  using namespace symbols;
  OpBuilder layer{.arch = architecture,
                  .one_sequence = one_sequence,
                  .dispatcher = dispatcher,
                  .pads_rows = pads_rows,
                  .pads_to_capacity = pads_to_capacity};
  const ValueId input = layer.table.value({"layer input", s * b * h, architecture.kernels.residual_dtype});
  const auto before = [&](std::string_view name, ValueId value) {
    return architecture.norm_position == NormPosition::after ? value : layer.norm(name, value);
  };
  const auto after = [&](std::string_view name, ValueId value) {
    return architecture.norm_position == NormPosition::before ? value : layer.norm(name, value);
  };
  ValueId normalized = input;
  ValueId middle = input;
  if (architecture.parts != LayerParts::mlp) {
    normalized = before("norm_1", input);
    const ValueId mixed = mix(layer, normalized);
    middle = layer.residual("residual_1", after("post_norm_1", mixed), input);
  }
  if (architecture.parts == LayerParts::mixer) return layer.table;
  const bool parallel = architecture.residual != ResidualForm::sequential;
  const ValueId read = architecture.residual == ResidualForm::parallel_shared_norm
                           ? normalized
                           : before("norm_2", parallel ? input : middle);
  const ValueId expanded = architecture.experts ? mixture(layer, read) : mlp(layer, read);
  layer.residual("residual_2", after("post_norm_2", expanded), middle);
  return layer.table;
}

// Returns the table of the layer that a Transformer or a LayerDescription describes. Its sizes may leave some
// rows without work: if each query head has its own key/value head, none is repeated; with
// one sequence in a microbatch, sequence first and batch first are the same order.
template <class Layer>
HEADROOM_VECTOR_CONSTEXPR OpTable layer_ops(const Layer& layer, std::int64_t micro_batch,
                                            Dispatcher dispatcher = Dispatcher::alltoall,
                                            bool pads_rows = false, bool pads_to_capacity = false) {
  Architecture architecture = layer.architecture;
  if (layer.key_value_heads == layer.heads) architecture.kernels.kv_sharing = KvSharing::grouped;
  return layer_ops(architecture, micro_batch == 1, dispatcher, pads_rows, pads_to_capacity);
}

}  // namespace headroom
