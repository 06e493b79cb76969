#include "headroom/memory/pass_events.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "headroom/parallel/compose.hpp"
#include "memory/backward_bytes.hpp"

namespace headroom {
namespace {

std::size_t place(int index) { return static_cast<std::size_t>(index); }

// Allocations and frees of one pass, and the tensors in use between them.
class Events {
 public:
  // `sources`: of the tensors, or null if nobody asks for them.
  Events(std::vector<MemoryEvent>& events, int& tensors, std::vector<TensorSource>* sources)
      : events_(events), tensors_(tensors), sources_(sources) {}

  int allocate(Bytes bytes, TensorUse use, int op, ValueId value = nowhere) {
    if (bytes <= Bytes(0)) return nowhere;
    events_.push_back({.tensor = tensors_, .bytes = bytes});
    if (sources_ != nullptr) sources_->push_back({.op = op, .value = value, .use = use, .bytes = bytes});
    return tensors_++;
  }
  void free(int& tensor) {
    if (tensor != nowhere) events_.push_back({.tensor = tensor});
    tensor = nowhere;
  }
  // Allocates a tensor that is freed when the current op ends.
  void allocate_for_op(Bytes bytes, TensorUse use, int op, ValueId value = nowhere) {
    of_op_.push_back(allocate(bytes, use, op, value));
  }
  void finish_op() {
    for (int& tensor : of_op_) free(tensor);
    of_op_.clear();
  }

 private:
  std::vector<MemoryEvent>& events_;
  int& tensors_;
  std::vector<TensorSource>* sources_;
  std::vector<int> of_op_;
};

class PassTrace {
 public:
  PassTrace(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed, Detail detail,
            const Software& software, const Bindings& letters, std::optional<PassGradients> gradients)
      : table_(kind.ops),
        of_op_(kind, sharding, software, letters),
        bytes_(of_op_.values()),
        recomputed_(recomputed),
        made_(gradients) {
    for (const StoredTensor& tensor : stored_tensors(table_, sharding, recomputed, detail)) {
      if (tensor.value == nowhere) continue;  // random state, which lies in host memory
      stored_.push_back({.value = tensor.value,
                         .bytes = bytes_.number(tensor.bytes),
                         .from = tensor.received ? tensor.op : table_[tensor.value].producer,
                         .until = tensor.received ? tensor.op : of_op_.first_reader(tensor.value, recomputed),
                         .kept = tensor.kept,
                         .received = tensor.received});
    }
  }

  PassEvents run(Sources sources) && {
    PassEvents result;
    std::vector<TensorSource>* const listed = sources == Sources::listed ? &result.sources : nullptr;
    Events forward(result.forward, result.tensors, listed);
    go_forward(forward, every_op(table_), true);
    Events backward(result.backward, result.tensors, listed);
    go_backward(backward);
    for (const int tensor : weight_gradients_) {
      if (tensor != nowhere) result.weight_gradients.push_back(tensor);
    }
    return result;
  }

 private:
  struct Stored {
    ValueId value = nowhere;
    Bytes bytes;
    int from = nowhere;   // made by this op; nowhere: held by the caller
    int until = nowhere;  // freed after the backward pass of this op
    bool kept = false;    // or recomputed
    bool received = false;
    int tensor = nowhere;
  };

  // Goes through the ops of a set. Their saved or recomputed tensors stay.
  void go_forward(Events& events, OpSet ops, bool kept) {
    std::vector<int> passing(table_.values().size(), nowhere);
    std::vector<int> last_uses(table_.values().size());
    for (std::size_t value = 0; value < last_uses.size(); ++value) {
      const Value& it = table_.values()[value];
      last_uses[value] = std::max(it.producer, it.held_until);
      for (std::size_t op = 0; op < table_.ops().size(); ++op) {
        if (table_.ops()[op].inputs.contains(static_cast<ValueId>(value)))
          last_uses[value] = std::max(last_uses[value], static_cast<int>(op));
      }
    }
    const auto store = [&](int producer) {
      for (Stored& stored : stored_) {
        if (stored.kept != kept || stored.from != producer) continue;
        const TensorUse use = kept ? TensorUse::saved : TensorUse::recomputed;
        stored.tensor = events.allocate(stored.bytes, use, producer, stored.value);
      }
    };
    store(nowhere);
    for (std::size_t op = 0; op < table_.ops().size(); ++op) {
      if ((ops & op_bit(op)) == 0) continue;
      const Op& row = table_.ops()[op];
      const int at = static_cast<int>(op);
      events.allocate_for_op(bytes_.exchanged_forward(row), TensorUse::exchanged, at);
      for (const ValueId input : row.inputs)
        events.allocate_for_op(bytes_.gathered_factor(row, input), TensorUse::gathered, at, input);
      for (const ValueId output : row.outputs) {
        events.allocate_for_op(bytes_.gathered(row, output, table_[output].dtype), TensorUse::gathered, at,
                               output);
        if (passes(output, kept))
          passing[place(output)] = events.allocate(bytes_.shard(output), TensorUse::value, at, output);
      }
      if (row.in_place) {  // its saved value exists already
        for (const ValueId input : row.inputs) events.free(passing[place(input)]);
      }
      store(at);
      events.finish_op();
      for (std::size_t value = 0; value < passing.size(); ++value) {
        if (last_uses[value] <= at) events.free(passing[value]);
      }
    }
    for (int& tensor : passing) events.free(tensor);
  }

  // Returns whether a value has memory of its own until it is read: it is neither stored nor too small to
  // matter.
  [[nodiscard]] bool passes(ValueId value, bool forward) const {
    const Value& it = table_[value];
    if (is_narrow(it.dtype) || it.detail == Detail::exact) return false;
    return std::none_of(stored_.begin(), stored_.end(), [&](const Stored& stored) {
      return stored.value == value && !stored.received && (stored.kept || !forward);
    });
  }

  void go_backward(Events& events) {
    const int ops = static_cast<int>(table_.ops().size());
    gradients_.fill(nowhere);
    const Op& last = table_.ops()[place(ops - 1)];
    if (last.kind != OpKind::loss) {
      const ValueId result = last.outputs[last.outputs.size() - 1];
      gradients_[place(result)] = events.allocate(bytes_.shard(result), TensorUse::gradient, nowhere, result);
    }
    bool recomputing = false;
    for (int op = ops - 1; op >= 0; --op) {
      if ((recomputed_.ops & op_bit(place(op))) != 0 && !recomputing) {
        recomputing = true;
        go_forward(events, recomputed_.ops, false);
      }
      go_through(events, op, recomputing);
    }
    for (int& tensor : gradients_) events.free(tensor);
    for (Stored& stored : stored_) events.free(stored.tensor);
  }

  void go_through(Events& events, int index, bool recomputing) {
    const Op& op = table_.ops()[place(index)];
    const auto allocate_for_op = [&](Bytes bytes, TensorUse use, ValueId value = nowhere) {
      events.allocate_for_op(bytes, use, index, value);
    };
    const auto gradient_of = [&](ValueId value) {
      return events.allocate(bytes_.shard(value), TensorUse::gradient, index, value);
    };
    allocate_for_op(of_op_.dequantized(op), TensorUse::dequantized);
    if (made_ && made_->stay) {
      weight_gradients_.push_back(
          events.allocate(of_op_.unit_gradient(op, made_->dtype), TensorUse::weight_gradient, index));
    } else if (made_) {
      allocate_for_op(of_op_.unit_gradient(op, made_->dtype), TensorUse::weight_gradient);
    } else {
      allocate_for_op(of_op_.weight_gradient(op), TensorUse::weight_gradient);
    }
    const Bytes exchanged = bytes_.exchanged_backward(op);
    allocate_for_op(recomputing ? std::max(exchanged, bytes_.exchanged_forward(op)) : exchanged,
                    TensorUse::exchanged);
    for (const ValueId output : op.outputs) {
      if (gradients_[place(output)] == nowhere) continue;
      allocate_for_op(bytes_.gathered_factor(op, output), TensorUse::gathered, output);
      allocate_for_op(of_op_.cast_gradient(op, output), TensorUse::cast, output);
    }
    for (const ValueId temporary : op.temporaries)
      allocate_for_op(bytes_.shard(temporary), TensorUse::temporary, temporary);
    std::vector<std::pair<ValueId, int>> made;
    std::vector<std::pair<ValueId, int>> casts;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const ValueId input = op.inputs[i];
      if (op.adds && (i + 1 == op.inputs.size() || op.saves.empty())) continue;  // shared, see below
      if (op.in_place) continue;
      const Bytes whole = bytes_.gathered(op, input, table_[input].dtype);
      allocate_for_op(of_op_.gathered_again(op, input), TensorUse::gathered, input);
      allocate_for_op(whole, TensorUse::gathered, input);
      // A gradient of another dtype exists until the one that stays is made from it.
      if (op.input_gradient) {
        casts.emplace_back(
            input, events.allocate(of_op_.input_gradient(op, input), TensorUse::gradient, index, input));
      } else {
        made.emplace_back(input, gradient_of(input));
      }
    }
    events.finish_op();
    if (op.adds) pass_on(op);
    for (const ValueId output : op.outputs) events.free(gradients_[place(output)]);
    for (Stored& stored : stored_) {
      if (stored.until == index) events.free(stored.tensor);
    }
    for (auto& [input, whole] : casts) {
      made.emplace_back(input, gradient_of(input));
      events.free(whole);
    }
    if (op.in_place) {
      for (const ValueId input : op.inputs) made.emplace_back(input, gradient_of(input));
    }
    for (const auto& [input, tensor] : made) {
      events.free(gradients_[place(input)]);
      gradients_[place(input)] = tensor;
    }
  }

  // The stream has the gradient of the sum, which a branch without dropout shares.
  void pass_on(const Op& op) {
    int& of_sum = gradients_[place(op.outputs[op.outputs.size() - 1])];
    const ValueId stream = op.inputs[op.inputs.size() - 1];
    if (gradients_[place(stream)] == nowhere) gradients_[place(stream)] = std::exchange(of_sum, nowhere);
  }

  const OpTable& table_;
  BackwardBytes of_op_;
  const TableBytes& bytes_;
  const RecomputedOps& recomputed_;
  std::vector<Stored> stored_;
  std::array<int, OpTable::max_values> gradients_{};
  std::vector<int> weight_gradients_;
  std::optional<PassGradients> made_;
};

}  // namespace

PassEvents pass_events(const LayerKind& kind, const Sharding& sharding, const RecomputedOps& recomputed,
                       Detail detail, const Software& software, const Bindings& letters,
                       std::optional<PassGradients> gradients, Sources sources) {
  return PassTrace(kind, sharding, recomputed, detail, software, letters, gradients).run(sources);
}

}  // namespace headroom
