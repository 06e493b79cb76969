// Cost of a layer, the embedding or the output layer on one rank, for one microbatch: the sum over the ops of
// its table.
#pragma once

#include <cstddef>
#include <vector>

#include "headroom/time/op_cost.hpp"

namespace headroom {

// An exchange between experts, and the ops of shared experts that overlap it.
struct HiddenExchange {
  std::size_t exchange = 0;
  std::vector<std::size_t> beside;
};

// Work of every op of a table. Only the sharding, gradients and software of the setting matter, not its
// numbers.
struct TableWork {
  std::vector<OpWork> ops;
  std::vector<HiddenExchange> hidden;
  std::vector<Monomial> inputs;  // bytes of the full boundary values that enter the table
};
TableWork table_work(const OpTable& table, const Setting& setting);

struct PricedTable {
  std::vector<OpCost> ops;
  Seconds gather;  // all-gather of a checkpoint saved in 1/t parts
  Seconds gather_launch;
};
PricedTable priced(const TableWork& work, const Setting& setting);

LayerCost table_cost(const PricedTable& table, const RecomputedOps& recomputed);
LayerCost table_cost(const OpTable& table, const RecomputedOps& recomputed, const Setting& setting);

// Returns the cost of a layer under the strategy's recomputation; with --recompute-layers, of a recomputed
// layer.
LayerCost layer_cost(const Transformer& model, const Strategy& strategy, const Setting& setting);

}  // namespace headroom
