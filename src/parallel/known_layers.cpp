#include "headroom/parallel/known_layers.hpp"

#include "headroom/model/layer_kinds.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

KnownLayers::KnownLayers(const Transformer& model, const Software& software)
    : model_(model),
      software_(software),
      usual_choices_{.kernels = kernels_of(software)},
      usual_(std::make_shared<const ModelLayers>(layers_of(model, usual_choices_))),
      by_batch_(any_layer(model, [](const Architecture& layer) {
        return layer.kernels.layout == AttentionLayout::batch_first || reads_batch_first(layer.mixers);
      })) {}

const std::shared_ptr<const ModelLayers>& KnownLayers::of(const Strategy& strategy) {
  LayerChoices choices = layer_choices(model_, strategy, software_);
  if (!by_batch_ || choices.micro_batch > 1) choices.micro_batch = usual_choices_.micro_batch;
  if (choices == usual_choices_ && !trains_adapters(strategy.lora)) return usual_;
  const auto [entry, added] =
      others_.try_emplace({choices, strategy.lora, autocasts_adapters(strategy, software_)});
  if (added) {
    Strategy alike = strategy;
    alike.micro_batch = choices.micro_batch;
    entry->second = std::make_shared<const ModelLayers>(layers_of(model_, alike, software_));
  }
  return entry->second;
}

}  // namespace headroom
