// What a training stack has of a strategy that does not say it: what its optimizer keeps, the dtype of
// gradients, and what ranks divide.
#pragma once

#include <algorithm>
#include <vector>

#include "headroom/hardware/software.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {

// Autocast keeps a model's weights in fp32 (`kernels.weight_copies`): their gradients and what is stepped are
// fp32 on any stack.
inline Strategy with_stack_defaults(Strategy strategy, const Software& software, const Transformer& model) {
  strategy.optimizer = software.optimizer;
  strategy.gradient_dtype = software.gradient_dtype;
  if (model.architecture.kernels.weight_copies) {
    strategy.optimizer.main_params = MainParams::fp32;
    strategy.gradient_dtype = Dtype::fp32;
  }
  return strategy;
}

// What a stack divides where nobody says it: the least that it has.
inline DataSharding least_sharding(const Software& software) {
  const std::vector<DataSharding>& modes = software.sharding.modes;
  return modes.empty() ? DataSharding::none : *std::min_element(modes.begin(), modes.end());
}

// What a stack does where no other rank holds the weights of a rank, and nothing says it.
inline DataSharding sharding_of_one(const Software& software, const Strategy& strategy) {
  const bool alone = strategy.tensor_parallel == 1 && software.sharding.plain_alone;
  return alone ? DataSharding::none : least_sharding(software);
}

// What makes the strategy of a stack's defaults: where a command names model and stack, what these say needs
// no flags.
inline Edits edits_of(const Strategy& strategy, const Software& software, const Transformer& model) {
  return edits_of(strategy, with_stack_defaults({}, software, model));
}

}  // namespace headroom
