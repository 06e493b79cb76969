#include "headroom/search/offload_choices.hpp"

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/legality.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

std::vector<Offload> offload_choices(const Request& base, const Space& space) {
  const Offload& own = base.strategy.offload;
  if (!space.offload) return {own};
  if (!base.system.host) {
    throw InputError("--try-offload",
                     "needs the host of the system, which " + base.system.name +
                         " does not describe: add its memory, memory_bandwidth, device_link and source");
  }
  std::vector<Offload> of_state(1);
  of_state.push_back({.optimizer = {1}, .overlaps = own.overlaps});
  const bool wanted = space.data_sharding.empty() || contains(space.data_sharding, DataSharding::zero3);
  if (wanted && contains(base.software.sharding.modes, DataSharding::zero3))
    of_state.push_back({.optimizer = {1}, .overlaps = own.overlaps, .parameters = true});
  const std::vector<std::string_view> all = parts_of(layers_of(base.model, base.strategy));
  std::vector<std::vector<std::string>> of_activations{
      {}, {std::string(layer_input)}, {"core_attn", "attn_proj"}};
  if (any_experts(base.model)) of_activations.push_back({"expert_fc1", "moe_act"});
  of_activations.emplace_back(all.begin(), all.end());
  std::vector<Offload> choices;
  for (const std::vector<std::string>& modules : of_activations) {
    for (Offload offload : of_state) {
      offload.modules = modules;
      choices.push_back(std::move(offload));
    }
  }
  if (!contains(choices, own)) choices.push_back(own);
  // What one device may offload, all may.
  Strategy alone{.optimizer = base.strategy.optimizer};
  std::erase_if(choices, [&](const Offload& offload) {
    alone.offload = offload;
    return !holds(asked(base, alone), searched_rules(Reads::layout));
  });
  return choices;
}

}  // namespace headroom
