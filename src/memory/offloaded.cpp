#include "headroom/memory/offloaded.hpp"

#include <algorithm>
#include <vector>

#include "headroom/core/contains.hpp"
#include "headroom/core/counts.hpp"
#include "headroom/parallel/offload_modules.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

struct Offloaded {
  Bytes freed;
  Bytes moved;
};

// Inputs of the rules that decide which tensors leave.
struct OffloadedLayer {
  const LayerKind& kind;
  const Sharding& sharding;
  const Bindings& letters;
  Detail detail = Detail::paper;
  bool layer_input = false;
  OpSet offloading = 0;
};

bool leaves(const OffloadedLayer& layer, const StoredTensor& tensor, Bytes bytes, const ValueUse& use,
            const RecomputedOps& recomputed) {
  const OpTable& table = layer.kind.ops;
  const Value& value = table[tensor.value];
  if (8 * bytes.count() / real(bits_of(tensor.dtype)) < least_offloaded_elements) return false;
  if (tensor.received) return (op_bit(static_cast<std::size_t>(tensor.op)) & ~layer.offloading) == 0;
  const bool checkpoint = (~recomputed.ops & every_op(table)) == 0;
  if (layer.layer_input && checkpoint && value.producer == nowhere) return true;
  const OpSet holders = holders_of(use, recomputed);
  return holders != 0 && (holders & ~layer.offloading) == 0;
}

Offloaded offloaded(const OffloadedLayer& layer, const RecomputedOps& recomputed) {
  const OpTable& table = layer.kind.ops;
  struct Kept {
    Bytes bytes;
    int buffer = nowhere;
    bool received = false;
    bool saved = false;
    bool pinned = false;  // no op needs it, but a view of its allocation
    bool leaves = false;
  };
  std::vector<Kept> kept;
  for (const StoredTensor& tensor : stored_tensors(table, layer.sharding, recomputed, layer.detail)) {
    if (!tensor.kept || tensor.value == nowhere) continue;
    const Bytes bytes(tensor.bytes.evaluate(layer.letters));
    const ValueUse use = use_of(table, tensor.value);
    const int buffer = table[tensor.value].buffer;
    kept.push_back({.bytes = bytes,
                    .buffer = buffer,
                    .received = tensor.received,
                    .saved = use.savers != 0,
                    .pinned = use.savers == 0 && (use.readers & recomputed.ops) == 0 && buffer != nowhere,
                    .leaves = leaves(layer, tensor, bytes, use, recomputed)});
  }
  Offloaded sum;
  const auto stays = [&](int buffer) {
    return std::any_of(kept.begin(), kept.end(), [&](const Kept& other) {
      return other.buffer == buffer && other.saved && !other.leaves;
    });
  };
  for (const Kept& tensor : kept) {
    if (tensor.pinned) {
      if (!stays(tensor.buffer)) sum.freed += tensor.bytes;
    } else if (tensor.leaves) {
      if (!tensor.received && tensor.buffer != nowhere && stays(tensor.buffer)) continue;
      sum.moved += tensor.bytes;
      sum.freed += tensor.bytes;
    }
  }
  return sum;
}

void take(LayerActivations& layer, const Offloaded& away) {
  layer.kept -= away.freed;
  layer.on_host = away.moved;
  // Offloaded values that the forward pass has made by then have left the device.
  if (layer.peaks.forward.during.op != nowhere) layer.peaks.forward.freed -= away.freed;
  BackwardPeak& peak = layer.peaks.backward;
  if (peak.during.op == nowhere) return;
  // Of the values freed by then, those that were not moved do not return.
  const Bytes freed = std::max(peak.freed - (away.freed - away.moved), Bytes(0));
  peak.fetched = std::max(away.moved - freed, Bytes(0));
  peak.freed = std::max(freed - away.moved, Bytes(0));
}

}  // namespace

void set_offloaded(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                   const Offload& offload, const Recomputation& recompute, Detail detail,
                   const Bindings& letters) {
  if (!offloads_activations(offload)) return;
  const bool whole = offload.layers > 0;
  const auto ranks = static_cast<std::int64_t>(letters[Symbol::tensor_parallel]);
  for (std::size_t i = 0; i < parts.kinds.size(); ++i) {
    const LayerKind& kind = layers.kinds[i];
    if (kind.position != KindPosition::layer) continue;
    const Sharding of_kind = sharding_of(kind.sizes, sharding, ranks);
    const Bindings numbers = bindings_of(kind.sizes, letters);
    const OffloadedLayer layer{
        .kind = kind,
        .sharding = of_kind,
        .letters = numbers,
        .detail = detail,
        .layer_input = contains(offload.modules, layer_input),
        .offloading = whole ? every_op(kind.ops) : offloading_ops(offload.modules, kind.ops)};
    if (!whole) take(parts.kinds[i].plain, offloaded(layer, {}));
    take(parts.kinds[i].recomputed, offloaded(layer, recomputed_ops_of(kind, recompute, of_kind)));
  }
}

}  // namespace headroom
