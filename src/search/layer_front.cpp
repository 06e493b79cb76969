#include "headroom/search/layer_front.hpp"

#include <algorithm>
#include <tuple>

#include "headroom/model/layer_ops.hpp"

namespace headroom {
namespace {

// What stored_tensors() finds for one replay after another, without the names: the bytes of every value, once.
class ReplayBytes {
 public:
  ReplayBytes(const OpTable& table, const Sharding& sharding, Detail detail, const Bindings& letters)
      : sharding_(sharding), detail_(detail) {
    for (std::size_t i = 0; i < table.values().size(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const Value& value = table[id];
      if (value.detail == Detail::exact && detail == Detail::paper) continue;
      if (value.tensor_parallel_only && !sharding.tensor) continue;
      const auto on_rank = [&](Placement placement) {
        return Bytes(Expr(bytes_on_rank(value, placement, sharding)).evaluate(letters));
      };
      values_.push_back({.value = value,
                         .use = use_of(table, id),
                         .shared = on_rank(value.placement),
                         .whole = on_rank(Placement::whole)});
    }
  }

  [[nodiscard]] LayerActivations of(const Replay& replay) const {
    LayerActivations sum;
    std::uint64_t kept_buffers = 0;
    for (const Sized& each : values_) {
      const Fate fate = fate_of(each.use, replay);
      if (!fate.needed) continue;
      const Placement placement = stored_placement(each.value, fate, sharding_, replay);
      (fate.kept ? sum.kept : sum.replayed) += placement == each.value.placement ? each.shared : each.whole;
      if (fate.kept && each.value.buffer != nowhere) kept_buffers |= std::uint64_t{1} << each.value.buffer;
    }
    if (detail_ == Detail::paper) return sum;
    for (const Sized& each : values_) {
      const bool pinned = each.value.buffer != nowhere && (kept_buffers >> each.value.buffer & 1) != 0;
      if (pinned && !fate_of(each.use, replay).needed) sum.kept += each.shared;
    }
    if (replay.ops != 0) sum.kept += Bytes(checkpoint_random_state_bytes);
    return sum;
  }

 private:
  struct Sized {
    Value value;
    ValueUse use;
    Bytes shared;
    Bytes whole;
  };
  Sharding sharding_;
  Detail detail_;
  std::vector<Sized> values_;
};

// A set with an op of which nothing comes: leaving it out keeps no more.
bool replays_in_vain(const std::vector<LayerChoice>& choices, const LayerChoice& choice) {
  for (OpSet left = choice.ops; left != 0; left &= left - 1) {
    const OpSet op = left & (~left + 1);
    if (no_worse(choices[choice.ops & ~op], choice)) return true;
  }
  return false;
}

}  // namespace

bool no_worse(const LayerChoice& x, const LayerChoice& y) {
  return x.bytes.kept <= y.bytes.kept && x.bytes.replayed <= y.bytes.replayed &&
         device_time(x.replay) <= device_time(y.replay) && x.replay.operations <= y.replay.operations;
}

LayerChoice layer_choice(const Transformer& model, const Strategy& strategy, const Workload& workload,
                         Detail detail, const Setting& setting) {
  return {.ops = replay_of(layer_ops(model.architecture), strategy.recompute).ops,
          .bytes = layer_activations(model, strategy, workload, strategy.recompute, detail),
          .replay = layer_cost(model, strategy, setting).replay};
}

std::vector<LayerChoice> all_layer_choices(const Transformer& model, const Strategy& strategy,
                                           const Workload& workload, Detail detail, const Setting& setting) {
  const OpTable table = layer_ops(model.architecture);
  const Collectives inserted = collectives(table, setting.sharding);
  const ReplayBytes bytes(table, setting.sharding, detail, bindings(model, strategy, workload));
  constexpr std::size_t most_enumerated =
      20;  // a million sets: a larger table needs a search that leaves sets out
  EXPECTS(table.ops().size() <= most_enumerated);
  std::vector<LayerChoice> choices(std::size_t{1} << table.ops().size());
  for (std::size_t op = 0; op < table.ops().size(); ++op) {
    const PassCost forward = op_cost(table, op, inserted, setting).forward;
    // Sets whose last op this is: the sums run in the order of the table, as those of table_cost() do.
    for (OpSet before = 0; before < op_bit(op); ++before) {
      LayerChoice& choice = choices[before | op_bit(op)];
      choice.ops = before | op_bit(op);
      choice.replay = choices[before].replay + forward;
    }
  }
  for (LayerChoice& choice : choices) choice.bytes = bytes.of({.ops = choice.ops, .discard_outputs = true});
  return choices;
}

std::vector<LayerChoice> layer_front(const std::vector<LayerChoice>& choices) {
  std::vector<LayerChoice> candidates;
  for (const LayerChoice& choice : choices) {
    if (!replays_in_vain(choices, choice)) candidates.push_back(choice);
  }
  const auto order = [](const LayerChoice& choice) {
    return std::tuple(choice.bytes.kept, device_time(choice.replay), choice.replay.operations,
                      choice.bytes.replayed, choice.ops);
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const LayerChoice& x, const LayerChoice& y) { return order(x) < order(y); });
  std::vector<LayerChoice> front;
  for (const LayerChoice& choice : candidates) {
    const bool beaten = std::any_of(front.begin(), front.end(),
                                    [&](const LayerChoice& other) { return no_worse(other, choice); });
    if (!beaten) front.push_back(choice);
  }
  std::reverse(front.begin(), front.end());
  return front;
}

}  // namespace headroom
