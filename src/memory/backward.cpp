#include "headroom/memory/backward.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/memory/forward.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/parameters.hpp"
#include "headroom/parallel/strategy_layers.hpp"
#include "memory/backward_bytes.hpp"

namespace headroom {
namespace {

constexpr auto half_size = static_cast<double>(size_of(Dtype::half));  // a weight's gradient has its dtype

class BackwardWalk {
 public:
  BackwardWalk(const LayerKind& kind, const BackwardBytes& of_op, const StoredTensors& tensors,
               const RecomputedOps& recomputed, std::optional<PassGradients> weight_gradients)
      : table_(kind.ops),
        of_op_(of_op),
        bytes_(of_op.values()),
        recomputed_(recomputed),
        weight_gradients_(weight_gradients) {
    for (const StoredTensor& tensor : tensors) {
      if (tensor.value == nowhere) continue;  // random state, which lies in host memory
      Stored stored{.until = tensor.received ? tensor.op : of_op_.first_reader(tensor.value, recomputed)};
      (tensor.kept ? stored.kept : stored.made_again) = bytes_.number(tensor.bytes);
      stored_.push_back(stored);
    }
  }

  // `recomputed`: bytes that the recomputation holds in all, which may exceed the values it recomputes.
  BackwardPeak worst(Bytes recomputed) {
    const int ops = static_cast<int>(table_.ops().size());
    const auto& results = table_.ops()[place(ops - 1)].outputs;
    if (table_.ops()[place(ops - 1)].kind != OpKind::loss) {
      const ValueId result = results[results.size() - 1];
      gradients_[place(result)] = {.alive = true, .bytes = bytes_.shard(result)};
    }
    BackwardPeak highest;
    for (int op = ops - 1; op >= 0; --op) {
      if ((recomputed_.ops & op_bit(place(op))) != 0 && !recomputing_) {
        recomputing_ = true;
        now_.recompute = recomputed;
      }
      const BackwardPeak during = go_through(op);
      if (highest.during.op == nowhere || total(during) > total(highest)) highest = during;
    }
    return highest;
  }

 private:
  struct Stored {
    Bytes kept;
    Bytes made_again;
    int until = nowhere;  // freed after the backward pass of this op
  };
  struct Gradient {
    bool alive = false;
    Bytes bytes;  // none if it shares another gradient's
  };

  static std::size_t place(int index) { return static_cast<std::size_t>(index); }
  // Returns whether the loss reads the value, directly or after capping or gathering.
  [[nodiscard]] bool is_logits(ValueId value) const {
    return std::any_of(table_.ops().begin(), table_.ops().end(), [&](const Op& op) {
      if (!op.inputs.contains(value)) return false;
      if (op.kind == OpKind::loss) return true;
      return (op.name == "softcap" || op.name == "gather_logits") && is_logits(op.outputs[0]);
    });
  }

  [[nodiscard]] Bytes exchanged(const Op& op) const {
    const Bytes backward = bytes_.exchanged_backward(op);
    return recomputing_ ? std::max(backward, bytes_.exchanged_forward(op)) : backward;
  }

  void count(BackwardPeak& during, ValueId value, Bytes bytes) const {
    (is_logits(value) ? during.logits : during.gradients) += bytes;
  }

  BackwardPeak go_through(int index) {
    const Op& op = table_.ops()[place(index)];
    BackwardPeak now = now_;
    now.during.op = index;
    now.dequantized = of_op_.dequantized(op);
    if (weight_gradients_) {
      now.weight_gradients += of_op_.unit_gradient(op, weight_gradients_->dtype);
      if (weight_gradients_->stay) now_.weight_gradients = now.weight_gradients;
    } else {
      now.weight_gradients = of_op_.weight_gradient(op);
    }
    now.gathered += exchanged(op);
    for (std::size_t value = 0; value < table_.values().size(); ++value) {
      if (gradients_[value].alive) count(now, static_cast<ValueId>(value), gradients_[value].bytes);
    }
    for (const ValueId output : op.outputs) {
      if (!gradients_[place(output)].alive) continue;
      now.gathered += bytes_.gathered_factor(op, output);
      now.gradients += of_op_.cast_gradient(op, output);
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const ValueId input = op.inputs[i];
      Gradient& gradient = gradients_[place(input)];
      const bool stream = op.adds && i + 1 == op.inputs.size();
      if (stream) {  // the gradient passes on to the stream
        gradient = {.alive = true, .bytes = bytes_.shard(input)};
      } else if (op.adds && op.saves.empty()) {  // the branch shares it, unless dropout changes it
        gradient.alive = true;
      } else {
        const Bytes whole = bytes_.gathered(op, input, table_[input].dtype);
        now.gathered += of_op_.gathered_again(op, input);
        if (!op.in_place) count(now, input, of_op_.input_gradient(op, input) + whole);
        gradient = {.alive = true, .bytes = bytes_.shard(input)};
      }
    }
    Bytes& temporaries = op.kind == OpKind::loss ? now.logits : now.gradients;
    for (const ValueId temporary : op.temporaries) temporaries += bytes_.shard(temporary);
    for (const ValueId output : op.outputs) gradients_[place(output)] = {};
    for (Stored& stored : stored_) {
      if (stored.until != index) continue;
      now_.freed += stored.kept;
      if (recomputing_) now_.recompute -= stored.made_again;
      stored = {};
    }
    return now;
  }

  const OpTable& table_;
  const BackwardBytes& of_op_;
  const TableBytes& bytes_;
  const RecomputedOps& recomputed_;
  std::vector<Stored> stored_;
  std::array<Gradient, OpTable::max_values> gradients_{};
  std::optional<PassGradients> weight_gradients_;
  BackwardPeak now_;  // freed and recomputed so far, and gradients of the unit
  bool recomputing_ = false;
};

std::int64_t tensor_ranks(const Bindings& letters) {
  return static_cast<std::int64_t>(letters[Symbol::tensor_parallel]);
}

}  // namespace

PassPeaks pass_peaks(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                     Bytes working_set, Detail detail, const Software& software, const Bindings& letters,
                     std::optional<PassGradients> weight_gradients) {
  const StoredTensors tensors = stored_tensors(kind.ops, sharding, recomputed, detail);
  const BackwardBytes of_op(kind, sharding, software, letters);
  PassPeaks peaks{.backward =
                      BackwardWalk(kind, of_op, tensors, recomputed, weight_gradients).worst(working_set)};
  if (recomputed.ops != 0) {
    const BackwardPeak again = replay_peak(kind, of_op.values(), tensors, recomputed, working_set);
    if (total(again) > total(peaks.backward)) peaks.backward = again;
  }
  const BackwardPeak forward = forward_peak(kind, of_op.values(), tensors, recomputed);
  if (total(forward) > total(peaks.backward)) peaks.forward = forward;
  return peaks;
}

const PassPeaks* KnownPeaks::find(std::size_t kind, const RecomputedOps& recomputed,
                                  Bytes working_set) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const Known& it) {
    return it.kind == kind && it.recomputed == recomputed && it.working_set == working_set;
  });
  return found == known_.end() ? nullptr : &found->peaks;
}

const PassPeaks& KnownPeaks::add(std::size_t kind, const RecomputedOps& recomputed, Bytes working_set,
                                 const PassPeaks& peaks) {
  known_.push_back({.kind = kind, .recomputed = recomputed, .working_set = working_set, .peaks = peaks});
  return known_.back().peaks;
}

void set_backward_peaks(ModelActivations& parts, const ModelLayers& layers, const Sharding& sharding,
                        const Recomputation& recompute, Detail detail, const Software& software,
                        const Bindings& letters, std::optional<PassGradients> weight_gradients,
                        KnownPeaks& known) {
  if (!software.memory.backward_buffers) return;
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const LayerKind& kind = layers.kinds[i];
    const Bindings own_letters = bindings_of(kind.sizes, letters);
    const Sharding own_sharding = sharding_of(kind.sizes, sharding, tensor_ranks(letters));
    KindActivations& part = parts.kinds[i];
    const auto peak = [&](const RecomputedOps& recomputed, Bytes working_set) {
      if (const PassPeaks* const found = known.find(i, recomputed, working_set)) return *found;
      return known.add(i, recomputed, working_set,
                       pass_peaks(kind, own_sharding, recomputed, working_set, detail, software, own_letters,
                                  weight_gradients));
    };
    part.plain.peaks = peak({}, Bytes(0));
    part.recomputed.peaks =
        is_layer(kind) ? peak(recomputed_ops_of(kind, recompute, own_sharding), part.recomputed.recomputed)
                       : part.plain.peaks;
    for (PassPeaks* const of : {&part.plain.peaks, &part.recomputed.peaks})
      of->backward.during.kind = of->forward.during.kind = static_cast<int>(i);
  }
}

Bytes dummy_gradients(const ModelLayers& layers, const KindCounts& counts, const Sharding& sharding,
                      const Software& software, const Bindings& letters) {
  Bytes sum;
  if (software.memory.dummy_gradients != DummyGradients::kept_by_shape) return sum;
  std::vector<std::pair<double, double>> shapes;  // outer and inner extents on one rank
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) {
    const LayerKind& kind = layers.kinds[i];
    if (kind.position != KindPosition::layer || counts[i] == 0) continue;
    const Bindings own_letters = bindings_of(kind.sizes, letters);
    const Sharding own_sharding = sharding_of(kind.sizes, sharding, tensor_ranks(letters));
    for (const Op& op : kind.ops.ops()) {
      if (op.kind != OpKind::linear || op.frozen) continue;
      for (const MatrixProduct& product : op.products) {
        const auto extent = [&](const Amount& amount) {
          return on_rank(amount, own_sharding).evaluate(own_letters);
        };
        double outer = 0;
        for (const Amount& part : product.outer) outer += extent(part);
        const std::pair shape{outer, extent(product.inner)};
        if (std::find(shapes.begin(), shapes.end(), shape) != shapes.end()) continue;
        shapes.push_back(shape);
        sum += Bytes(half_size * shape.first * shape.second);
      }
    }
  }
  return sum;
}

}  // namespace headroom
