#include "headroom/time/layer_cost.hpp"

#include <string_view>

#include "headroom/model/layer_ops.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/launches.hpp"

namespace headroom {
namespace {

// Shared experts run their first projection and activation beside the dispatch, and their second projection
// beside the combine [Megatron-Core, transformer/moe/token_dispatcher.py, MoEAlltoAllTokenDispatcher;
// shared_experts.py].
std::vector<HiddenExchange> hidden_exchanges(const OpTable& table, const Setting& setting) {
  if (!setting.software.overlap_shared_experts || setting.dispatcher == Dispatcher::allgather) return {};
  std::vector<HiddenExchange> hidden(2);
  bool exchanges = false;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const std::string_view name = table.ops()[i].name;
    exchanges = exchanges || name == "dispatch";
    if (name == "dispatch") hidden[0].exchange = i;
    if (name == "combine") hidden[1].exchange = i;
    if (name == "shared_up" || name == "shared_activation" || name == "shared_clamp")
      hidden[0].beside.push_back(i);
    if (name == "shared_down") hidden[1].beside.push_back(i);
  }
  return exchanges ? hidden : std::vector<HiddenExchange>{};
}

// Reduces an exchange to its exposed time beside the ops that overlap it.
void hide(PricedTable& table, const HiddenExchange& hidden, const CollectiveRates& rates) {
  Seconds forward;
  Seconds backward;
  const auto work = [](const PassCost& pass) { return pass.products() + pass.memory_bound; };
  for (const std::size_t i : hidden.beside) {
    const OpCost& op = table.ops[i];
    forward += work(op.forward);
    backward += work(op.backward_data) + work(op.backward_weight);
  }
  const auto leave = [&](PassCost& pass, Seconds beside) {
    if (beside == Seconds(0)) return;
    pass.communication = exposed_beside(beside, pass.communication, rates);
    pass.expert_communication = pass.communication;
  };
  leave(table.ops[hidden.exchange].forward, forward);
  leave(table.ops[hidden.exchange].backward_data, backward);
}

}  // namespace

TableWork table_work(const OpTable& table, const Setting& setting) {
  const Collectives inserted = collectives(table, setting.sharding);
  TableWork work;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    work.ops.push_back(op_work(table, i, inserted, setting));
  }
  work.hidden = hidden_exchanges(table, setting);
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
  for (const HiddenExchange& hidden : work.hidden) hide(table, hidden, setting.performance.rates.collectives);
  for (const Monomial& input : work.inputs) {
    table.gather += collective_time(CollectiveKind::all_gather, Bytes(input.evaluate(setting.letters)),
                                    setting.groups[ParallelAxis::tensor], setting.performance);
  }
  table.gather_launch = host_time(1, 0, launch_times(setting.performance.rates.host, setting.software));
  return table;
}

namespace {

// Returns the cost of recomputing an op: all of its forward pass except outputs and sums that a cache keeps.
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

Race race_of(const OpCost& op) {
  const Race alone = race_of_op(op.forward.host, device_time(op.forward) - op.forward.drained, op.kernels);
  return op.host_waits ? wait_for_device * alone : alone;
}

}  // namespace

LayerCost table_cost(const PricedTable& table, const RecomputedOps& recomputed) {
  LayerCost sum;
  for (std::size_t i = 0; i < table.ops.size(); ++i) {
    const OpCost& op = table.ops[i];
    sum.forward += op.forward;
    sum.race = sum.race * race_of(op);
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
