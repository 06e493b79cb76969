// Cost of a layer, the embedding or the output layer on one rank, for one microbatch: the sum over the ops of
// its table.
#pragma once

#include <cstddef>
#include <vector>

#include "headroom/time/op_cost.hpp"
#include "headroom/time/race.hpp"

namespace headroom {

struct LayerCost {
  PassCost forward;
  PassCost backward_data;
  PassCost backward_weight;
  PassCost recompute;   // forward work that the backward pass repeats first
  Race race;            // through the forward pass
  bool begins = false;  // comes before the layers of the model
  Extrapolations beyond;
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

// Returns the cost of the backward pass without recomputation.
constexpr PassCost backward(const LayerCost& cost) { return cost.backward_data + cost.backward_weight; }

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
