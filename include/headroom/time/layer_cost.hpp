// What a layer, the embedding or the head costs on one rank, for one microbatch: the ops of its table, summed up.
#pragma once

#include <cstddef>
#include <vector>

#include "headroom/time/op_cost.hpp"

namespace headroom {

struct LayerCost {
  PassCost forward;
  PassCost backward_data;
  PassCost backward_weight;
  PassCost recompute;  // what the backward pass runs again first
  Extrapolations beyond;
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

// Without the recomputation.
constexpr PassCost backward(const LayerCost& cost) { return cost.backward_data + cost.backward_weight; }

// An exchange between experts, and the ops of shared experts that run beside it.
struct HiddenExchange {
  std::size_t exchange = 0;
  std::vector<std::size_t> beside;
};

// The work of every op of a table. Of the setting only what is no number counts: sharding, gradients and software.
struct TableWork {
  std::vector<OpWork> ops;
  std::vector<HiddenExchange> hidden;
  std::vector<Monomial> inputs;  // bytes of the whole boundary values that enter the table
};
TableWork table_work(const OpTable& table, const Setting& setting);

struct PricedTable {
  std::vector<OpCost> ops;
  Seconds gather;  // of a checkpoint of which every rank keeps 1/t, before its recomputation
  Seconds gather_launch;
};
PricedTable priced(const TableWork& work, const Setting& setting);

LayerCost table_cost(const PricedTable& table, const RecomputedOps& recomputed);
LayerCost table_cost(const OpTable& table, const RecomputedOps& recomputed, const Setting& setting);

// The layer under the recomputation of the strategy: with --recompute-layers, a layer that is recomputed.
LayerCost layer_cost(const Transformer& model, const Strategy& strategy, const Setting& setting);

}  // namespace headroom
