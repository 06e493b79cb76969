#include "headroom/memory/forward.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "headroom/parallel/compose.hpp"
#include "table_bytes.hpp"

namespace headroom {
namespace {

class ForwardWalk {
 public:
  ForwardWalk(const LayerKind& kind, const TableBytes& bytes, const StoredTensors& tensors,
              const RecomputedOps& recomputed, bool replays)
      : table_(kind.ops),
        bytes_(bytes),
        replays_(replays),
        ops_(replays ? recomputed.ops : every_op(kind.ops)),
        lasting_(kind.ops.values().size()),
        last_uses_(kind.ops.values().size()) {
    for (const StoredTensor& tensor : tensors) {
      if (tensor.value == nowhere) continue;
      if (tensor.kept != replays) {
        stored_.emplace_back(tensor.received ? tensor.op : table_[tensor.value].producer,
                             bytes_.number(tensor.bytes));
      }
      if (!tensor.received && (tensor.kept || replays)) lasting_[index_of(tensor.value)] = true;
    }
    for (std::size_t value = 0; value < lasting_.size(); ++value) {
      const Value& it = table_.values()[value];
      if (it.producer == nowhere) lasting_[value] = true;  // the caller holds the value
      last_uses_[value] = std::max(it.producer, it.held_until);
    }
    for (std::size_t op = 0; op < table_.ops().size(); ++op) {
      for (const ValueId input : table_.ops()[op].inputs) {
        last_uses_[index_of(input)] = std::max(last_uses_[index_of(input)], static_cast<int>(op));
      }
    }
  }

  // Returns the peak over all ops; `base` stays in use throughout.
  [[nodiscard]] BackwardPeak worst(const BackwardPeak& base) const {
    BackwardPeak highest;
    for (std::size_t op = 0; op < table_.ops().size(); ++op) {
      if ((ops_ & op_bit(op)) == 0) continue;
      BackwardPeak now = base;
      now.during = {.op = static_cast<int>(op), .pass = replays_ ? OpPass::recomputation : OpPass::forward};
      now.forward_values = held(static_cast<int>(op));
      for (const auto& [producer, bytes] : stored_) {
        const bool made = producer <= static_cast<int>(op);
        if (replays_ && made) now.recompute += bytes;
        if (!replays_ && !made) now.freed += bytes;
      }
      if (highest.during.op == nowhere || total(now) > total(highest)) highest = now;
    }
    return highest;
  }

 private:
  static std::size_t index_of(ValueId value) { return static_cast<std::size_t>(value); }

  // Returns bytes of unsaved values while an op runs. Values of detail `exact` are too small to matter.
  [[nodiscard]] Bytes held(int op) const {
    const Op& row = table_.ops()[static_cast<std::size_t>(op)];
    Bytes sum = bytes_.exchanged_forward(row);
    for (const ValueId input : row.inputs) sum += bytes_.gathered_factor(row, input);
    for (std::size_t value = 0; value < lasting_.size(); ++value) {
      const Value& it = table_.values()[value];
      if (lasting_[value] || it.producer > op || (ops_ & op_bit(index_of(it.producer))) == 0) continue;
      if (last_uses_[value] < op) continue;
      if (is_narrow(it.dtype) || it.detail == Detail::exact) continue;
      if (row.in_place && row.inputs.contains(static_cast<ValueId>(value)))
        continue;  // its saved value is counted already
      sum += bytes_.shard(static_cast<ValueId>(value));
    }
    for (const ValueId output : row.outputs) sum += bytes_.gathered(row, output, table_[output].dtype);
    return sum;
  }

  const OpTable& table_;
  const TableBytes& bytes_;
  bool replays_ = false;
  OpSet ops_;
  std::vector<bool> lasting_;                  // saved, recomputed, or held by the caller
  std::vector<int> last_uses_;                 // last op that reads or refers to a value
  std::vector<std::pair<int, Bytes>> stored_;  // bytes, by the op that makes them
};

}  // namespace

BackwardPeak forward_peak(const LayerKind& kind, const TableBytes& bytes, const StoredTensors& stored,
                          const RecomputedOps& recomputed) {
  return ForwardWalk(kind, bytes, stored, recomputed, false).worst({});
}

BackwardPeak forward_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                          Detail detail, const Bindings& letters) {
  return forward_peak(kind, TableBytes(kind, sharding, letters),
                      stored_tensors(kind.ops, sharding, recomputed, detail), recomputed);
}

BackwardPeak replay_peak(const LayerKind& kind, const TableBytes& bytes, const StoredTensors& stored,
                         const RecomputedOps& recomputed, Bytes working_set) {
  const auto& results = kind.ops.ops()[kind.ops.ops().size() - 1].outputs;
  Bytes made;
  for (const StoredTensor& tensor : stored) {
    if (!tensor.kept && tensor.value != nowhere) made += bytes.number(tensor.bytes);
  }
  return ForwardWalk(kind, bytes, stored, recomputed, true)
      .worst({.recompute = std::max(working_set - made, Bytes(0)),
              .gradients = bytes.shard(results[results.size() - 1])});
}

BackwardPeak replay_peak(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                         Bytes working_set, Detail detail, const Bindings& letters) {
  return replay_peak(kind, TableBytes(kind, sharding, letters),
                     stored_tensors(kind.ops, sharding, recomputed, detail), recomputed, working_set);
}

}  // namespace headroom
