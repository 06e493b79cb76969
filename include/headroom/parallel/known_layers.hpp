// Keeps the layers of one model on one training stack, for one strategy after another. Building their op tables
// takes far longer than evaluating a strategy, and few strategies differ in them.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include "headroom/hardware/software.hpp"
#include "headroom/model/layer_kinds.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

class KnownLayers {
 public:
  // Keeps references to both arguments.
  KnownLayers(const Transformer& model, const Software& software);

  // Returns the layers as a strategy runs them.
  const std::shared_ptr<const ModelLayers>& of(const Strategy& strategy);
  // Returns the layers for microbatches of several sequences, at 16 bits.
  [[nodiscard]] const ModelLayers& usual() const { return *usual_; }

 private:
  const Transformer& model_;
  const Software& software_;
  LayerChoices usual_choices_;
  std::shared_ptr<const ModelLayers> usual_;
  bool by_batch_ = false;  // whether microbatches of one sequence have layers of their own
  // By choices, adapters, and whether adapters run under autocast.
  std::map<std::tuple<LayerChoices, Lora, bool>, std::shared_ptr<const ModelLayers>> others_;
};

}  // namespace headroom
