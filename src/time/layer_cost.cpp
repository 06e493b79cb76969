#include "headroom/time/layer_cost.hpp"

#include "headroom/model/layer_ops.hpp"
#include "headroom/time/launches.hpp"

namespace headroom {

TableWork table_work(const OpTable& table, const Setting& setting) {
  const Collectives inserted = collectives(table, setting.sharding);
  TableWork work;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    work.ops.push_back(op_work(table, i, inserted, setting));
  }
  for (const Value& value : table.values()) {
    if (value.producer == nowhere && value.placement == Placement::boundary) {
      work.inputs.push_back(whole_bytes(value, setting.sharding));
    }
  }
  return work;
}

PricedTable priced(const TableWork& work, const Setting& setting) {
  PricedTable table;
  for (const OpWork& op : work.ops) table.ops.push_back(op_cost(op, setting));
  for (const Monomial& input : work.inputs) {
    table.gather += collective_time(CollectiveKind::all_gather, Bytes(input.evaluate(setting.letters)),
                                    setting.groups[ParallelAxis::tensor], setting.performance);
  }
  table.gather_launch = host_time(1, 0, launch_times(setting.performance.rates.host, setting.software));
  return table;
}

namespace {

// What a recomputation takes of an op: all of its forward pass, but for outputs and sums that a cache keeps.
PassCost run_again(const OpCost& op, const RecomputedOps& recomputed) {
  double part = 1;
  for (const auto& [value, share] : op.made) {
    const auto id = static_cast<std::size_t>(value);
    if (recomputed.cached.contains(id)) part -= share;
    if (recomputed.half_cached.contains(id)) part -= share / 2;
  }
  PassCost cost = op.forward;
  if (part < 1) {
    cost.gemm = part * cost.gemm;
    cost.memory_bound = part * cost.memory_bound;
  }
  if (!recomputed.caches_reductions) return cost;
  cost.communication -= op.reduction;
  cost.memory_bound -= op.reduction_copies;
  return cost;
}

}  // namespace

LayerCost table_cost(const PricedTable& table, const RecomputedOps& recomputed) {
  LayerCost sum;
  for (std::size_t i = 0; i < table.ops.size(); ++i) {
    const OpCost& op = table.ops[i];
    sum.forward += op.forward;
    sum.backward_data += op.backward_data;
    sum.backward_weight += op.backward_weight;
    if ((recomputed.ops & op_bit(i)) != 0) sum.recompute += run_again(op, recomputed);
    sum.beyond = sum.beyond | op.beyond;
  }
  if (recomputed.shard_checkpoint)
    sum.recompute += {.communication = table.gather,
                      .operations = table.gather_launch > Seconds(0) ? 1 : 0,
                      .host = table.gather_launch};
  return sum;
}

LayerCost table_cost(const OpTable& table, const RecomputedOps& recomputed, const Setting& setting) {
  return table_cost(priced(table_work(table, setting), setting), recomputed);
}

LayerCost layer_cost(const Transformer& model, const Strategy& strategy, const Setting& setting) {
  const OpTable table = layer_table(model, strategy);
  return table_cost(table, recomputed_ops_of(table, strategy.recompute, setting.sharding), setting);
}

}  // namespace headroom
