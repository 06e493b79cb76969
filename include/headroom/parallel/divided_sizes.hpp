// Sizes of a layer that the ranks of an axis split evenly [Megatron-LM, core/utils.py, divide].
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

#include "headroom/core/axis.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

struct DividedSize {
  ParallelAxis axis;
  std::int64_t size;
  std::string_view name;      // in "must divide the ..."
  bool exchanged = false;     // CP ranks exchange tokens for it, and split the share of a TP rank
  std::string_view why = {};  // ends the error about CP ranks that do not divide it
};

// Calls visit(size) for each size of a layer that ranks split. `layer` is a model of one kind, or a kind of
// layers.
template <class Layer, class Visit>
void visit_divided_sizes(const Layer& layer, const Visit& visit) {
  using enum ParallelAxis;
  const Architecture& has = layer.architecture;
  if (has_attention(has)) visit(DividedSize{tensor, layer.heads, "attention heads"});
  if (has_dense_mlp(has)) visit(DividedSize{tensor, layer.feedforward, "feed-forward width"});
  with_mixer(has.mixers, [&](const auto& row, const auto& mixer) {
    for (const auto& size : row.sizes) {
      if (!size.divided.empty())
        visit(DividedSize{tensor, mixer.*size.member, size.divided, true, size.context_limit});
    }
  });
  if (const std::optional<Experts>& experts = has.experts) {
    visit(DividedSize{expert, experts->count, "experts"});
    visit(DividedSize{expert_tensor, experts->feedforward, "width of the experts"});
    visit(DividedSize{tensor, experts->shared_feedforward, "width of the shared experts"});
  }
}

// Returns the largest number of ranks of an axis that splits all layers of a model evenly. Every divisor of
// it does so, too. Returns 0 if the axis splits nothing.
inline std::int64_t most_ranks(const Transformer& model, ParallelAxis axis) {
  std::int64_t most = 0;
  const auto take = [&](const DividedSize& size) {
    if (size.axis == axis) most = std::gcd(most, size.size);
  };
  if (model.layer_kinds.empty()) visit_divided_sizes(model, take);
  for (const LayerDescription& kind : model.layer_kinds) visit_divided_sizes(kind, take);
  return most;
}

}  // namespace headroom
