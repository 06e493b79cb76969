#include "headroom/model/transformer.hpp"

#include "headroom/core/counts.hpp"

namespace headroom {

LayerDescription own_layer(const Transformer& model) {
  return {.name = model.architecture.experts ? "moe" : "dense",
          .feedforward = model.feedforward,
          .heads = model.heads,
          .key_value_heads = model.key_value_heads,
          .head_size = model.head_size,
          .architecture = model.architecture};
}

std::int64_t padded_vocabulary(const Transformer& model, std::int64_t tensor_parallel) {
  const std::int64_t multiple = model.vocabulary_multiple * tensor_parallel;
  return round_up(model.vocabulary, multiple);
}

Transformer with_attention(Transformer model, AttentionKernel of_stack) {
  if (model.attention_kernel.stated) return model;
  model.architecture.kernels.attention = of_stack;
  for (LayerDescription& kind : model.layer_kinds) kind.architecture.kernels.attention = of_stack;
  return model;
}

}  // namespace headroom
