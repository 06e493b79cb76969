// The layers of a model as a strategy runs them on a training stack: the numbers behind their letters, their
// op tables, how ranks share them, and what is recomputed.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/expr/expr.hpp"
#include "headroom/hardware/software.hpp"
#include "headroom/model/adapters.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

// Returns the mean number of `parts` (ranks or nodes that share the experts evenly) that hold at least one of
// the q experts of a token.
double parts_per_token(const Bindings& letters, double parts);

// Returns the keys that a query meets with a sliding window of w tokens (0: no window). A causal mask counts
// as a full one, so this is twice the window's area in the mask, s w - w^2/2, over s. Returns s if w >= s.
double keys_met(std::int64_t window, double sequence);

// Returns the keys that a query meets in its own chunk of `chunk` tokens (0: one chunk for the sequence). A
// causal mask counts as a full one. The last chunk may be shorter.
double keys_in_chunk(std::int64_t chunk, double sequence);

// Returns the numbers behind the paper's letters, bound here and nowhere else.
Bindings bindings(const Transformer& model, const Strategy& strategy, const Workload& workload);
// Returns the letters of the model with the sizes of one kind of layers.
Bindings bindings_of(const KindSizes& sizes, Bindings of_model);

// Returns how the TP ranks of a strategy split the vocabulary of a model on a training stack.
inline VocabularyParallel vocabulary_parallel(const Transformer& model, const Strategy& strategy,
                                              const Software& software) {
  if (strategy.tensor_parallel == 1) return {};
  VocabularyParallel vocabulary =
      model.architecture.tied_embeddings ? of_tied(software.vocabulary) : software.vocabulary;
  vocabulary.distributed =
      vocabulary.loss == LossParallel::vocabulary && software.cross_entropy == CrossEntropy::plain;
  return vocabulary;
}

// Returns whether linears cast FP32 weights under torch.autocast: the stack does so, no rank shards them, and
// the optimizer steps them. False with adapters, in fewer than 16 bits, and for layers with experts, latent
// attention or a mixer, which are not modelled under autocast.
bool autocasts(const Transformer& model, const Strategy& strategy, const Software& software);
// Returns whether a rank's weights and gradients are FP32, and each linear casts its weights to 16 bits.
inline bool keeps_fp32_weights(const Transformer& model, const Strategy& strategy, const Software& software) {
  return model.architecture.kernels.weight_copies || autocasts(model, strategy, software);
}
// Returns whether the adapters of a frozen model are FP32, and torch.autocast casts them to 16 bits.
inline bool autocasts_adapters(const Strategy& strategy, const Software& software) {
  return software.sharding.autocast && strategy.data_sharding == DataSharding::none &&
         strategy.optimizer.main_params == MainParams::fp32 && !is_narrow(strategy.precision) &&
         trains_adapters(strategy.lora);
}

// Returns how a training stack adapts and quantizes the linears of a frozen model.
inline AdapterChoices adapter_choices(const Strategy& strategy, const Software& software) {
  return {.autocast = autocasts_adapters(strategy, software),
          .keeps_quantized_inputs = software.memory.keeps_quantized_inputs,
          .quantizes_output_layer = software.memory.quantizes_output_layer,
          .dequantizes_through_fp16 = software.memory.dequantizes_through_fp16,
          .pads_adapters = software.memory.pads_adapters};
}

// Returns how a strategy computes the layers of a model on a training stack.
inline LayerChoices layer_choices(const Transformer& model, const Strategy& strategy,
                                  const Software& software) {
  StackKernels kernels = kernels_of(software);
  kernels.autocast = autocasts(model, strategy, software);
  return {.micro_batch = strategy.micro_batch,
          .precision = strategy.precision,
          .scope = strategy.precision_scope,
          .dispatcher = strategy.moe_dispatcher,
          .pads_rows = !routes_padded(strategy),
          .pads_to_capacity = strategy.moe_pad_to_capacity,
          .kernels = kernels,
          .vocabulary = vocabulary_parallel(model, strategy, software)};
}
// Returns the layers of a model with the op tables that a strategy runs, adapters included.
inline ModelLayers layers_of(const Transformer& model, const Strategy& strategy,
                             const Software& software = {}) {
  const CrossEntropy loss =
      model.architecture.kernels.cross_entropy.value_or(kernels_of(software).cross_entropy);
  ModelLayers layers = with_adapters(layers_of(model, layer_choices(model, strategy, software)), loss,
                                     strategy.lora, adapter_choices(strategy, software));
  if (software.memory.keeps_views) {
    for (LayerKind& kind : layers.kinds) kind.ops.keep_views();
  }
  return layers;
}

// Returns the op table of the first kind of layers, which is every layer's if all are alike.
OpTable layer_table(const Transformer& model, const Strategy& strategy);

// Returns how a strategy divides the values of op tables.
Sharding sharding_of(const Transformer& model, const Strategy& strategy);
// Returns the sharding of one kind of layers, which may have fewer key/value heads than there are TP ranks
// even if the model has not.
Sharding sharding_of(const KindSizes& sizes, Sharding of_model, std::int64_t tensor_parallel);

// Returns the ops of a layer's table that a policy recomputes. The sharding says which exchanges run among
// ranks. Names in `ops` that the table does not have are ignored.
RecomputedOps recomputed_ops_of(const OpTable& table, const Recomputation& recompute,
                                const Sharding& sharding);
// Returns the recomputed ops of a kind of layers; "KIND.OP" names one of its ops, too. Layers of multi-token
// prediction follow policies and modules, but not names of ops. Nothing else at the ends of a model is
// recomputed.
RecomputedOps recomputed_ops_of(const LayerKind& kind, const Recomputation& recompute,
                                const Sharding& sharding);

inline std::vector<std::int64_t> layers_by_stage(const Transformer& model, const Strategy& strategy) {
  return layers_by_stage(model.layers, strategy);
}

}  // namespace headroom
