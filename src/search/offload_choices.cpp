#include "headroom/search/offload_choices.hpp"

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/stack_legality.hpp"

namespace headroom {

std::vector<Offload> offload_choices(const Request& base, const Space& space) {
  const Offload& asked = base.strategy.offload;
  if (!space.offload) return {asked};
  if (!base.system.host) {
    throw InputError("--try-offload",
                     "needs the host of the system, which " + base.system.name +
                         " does not say: its memory, memory_bandwidth, device_link and source");
  }
  std::vector<Offload> of_state(1);
  const Optimizer& optimizer = base.strategy.optimizer;
  if (!steps_matrices(optimizer.kind) && optimizer.main_params != MainParams::none) {
    of_state.push_back({.optimizer = {1}, .overlaps = asked.overlaps});
    const bool wanted = space.data_sharding.empty() || contains(space.data_sharding, DataSharding::zero3);
    if (wanted && contains(base.software.sharding.modes, DataSharding::zero3))
      of_state.push_back({.optimizer = {1}, .overlaps = asked.overlaps, .parameters = true});
  }
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
  if (!contains(choices, asked)) choices.push_back(asked);
  std::erase_if(choices,
                [&](const Offload& offload) { return !offload_lacking(base.software, offload).empty(); });
  return choices;
}

}  // namespace headroom
