#include "headroom/time/layer_cost.hpp"

#include "headroom/model/ends_ops.hpp"
#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// A checkpoint of which every rank keeps 1/t is gathered before its replay.
Seconds gather_of_checkpoint(const OpTable& table, const Setting& setting) {
  Seconds time;
  for (const Value& value : table.values()) {
    if (value.producer != nowhere || value.placement != Placement::boundary) continue;
    const Bytes bytes(detail::whole_bytes_of(value).evaluate(setting.letters));
    time += collective_time(CollectiveKind::all_gather, bytes, setting.tensor_group, setting.performance);
  }
  return time;
}

}  // namespace

LayerCost table_cost(const OpTable& table, const Replay& replay, const Setting& setting) {
  const Collectives inserted = collectives(table, setting.sharding, replay);
  LayerCost sum;
  for (std::size_t i = 0; i < table.ops().size(); ++i) {
    const OpCost op = op_cost(table, i, inserted, setting);
    sum.forward += op.forward;
    sum.backward_data += op.backward_data;
    sum.backward_weight += op.backward_weight;
    if ((replay.ops & op_bit(i)) != 0) sum.replay += op.forward;
    sum.beyond = sum.beyond | op.beyond;
  }
  if (replay.shard_checkpoint) {
    sum.replay += {.communication = gather_of_checkpoint(table, setting), .operations = 1};
  }
  return sum;
}

LayerCost layer_cost(const Transformer& model, const Strategy& strategy, const Setting& setting) {
  const OpTable table = layer_ops(model.architecture);
  return table_cost(table, replay_of(table, strategy.recompute), setting);
}

LayerCost embedding_cost(const Transformer& model, const Setting& setting) {
  return table_cost(embedding_ops(model.architecture), {}, setting);
}

LayerCost head_cost(const Transformer& model, const Setting& setting) {
  return table_cost(head_ops(model.architecture), {}, setting);
}

}  // namespace headroom
