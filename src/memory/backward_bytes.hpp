// Bytes of a backward pass through one op beyond the values of its table (table_bytes.hpp): gradients of its
// weights, of its inputs while it runs, of its outputs in the GEMM's dtype, and weights dequantized to BF16.
#pragma once

#include "headroom/core/counts.hpp"
#include "headroom/memory/backward.hpp"
#include "headroom/parallel/compose.hpp"
#include "headroom/parallel/parameters.hpp"
#include "memory/table_bytes.hpp"

namespace headroom {

class BackwardBytes {
 public:
  BackwardBytes(const LayerKind& kind, const Sharding& sharding, const Software& software,
                const Bindings& letters)
      : kind_(kind),
        bytes_(kind, sharding, letters),
        sharding_(sharding),
        software_(software),
        letters_(letters) {}

  [[nodiscard]] const TableBytes& values() const { return bytes_; }

  // Returns bytes of an output's gradient cast by rows and by columns, if the op runs in fewer than 16 bits.
  // A gathered gradient is one of the two.
  [[nodiscard]] Bytes cast_gradient(const Op& op, ValueId output) const {
    if (!multiplies_narrow(op) && !attends_narrow(op)) return Bytes(0);
    const Bytes whole = bytes_.gathered_factor(op, output);
    const Value& value = kind_.ops[output];
    const Bytes own = bytes_.number(whole_bytes(value, sharding_, op.products[0].dtype) *
                                    share(value.placement, sharding_));
    return whole > Bytes(0) ? whole : 2 * own;
  }

  // Returns bytes of a weight gradient that a separate kernel adds, or of the dummy for one that was added to
  // the sum.
  [[nodiscard]] Bytes weight_gradient(const Op& op) const {
    const DummyGradients dummies = software_.memory.dummy_gradients;
    const bool separate = software_.gradient_accumulation == GradientAccumulation::separate;
    const bool of_its_own =
        dummies == DummyGradients::transient ||
        (dummies == DummyGradients::kept_by_shape && kind_.position == KindPosition::last && !kind_.predicts);
    const bool linear = op.kind == OpKind::linear && (separate || of_its_own);
    return linear || op.kind == OpKind::embedding ? unit_gradient(op) : Bytes(0);
  }

  // Returns bytes of the gradients of all weights of the op, if they are reduced when their unit is done.
  [[nodiscard]] Bytes unit_gradient(const Op& op, Dtype dtype = Dtype::half) const {
    const double element = real(size_of(kind_.fp32_weights ? Dtype::fp32 : dtype));
    return op.frozen ? Bytes(0) : element * Bytes(parameters(op, sharding_).evaluate(letters_));
  }

  [[nodiscard]] Bytes dequantized(const Op& op) const {
    if (!is_quantized(op)) return Bytes(0);
    double most = 0;
    double all = 0;
    for (const MatrixProduct& product : op.products) {
      const double weights = weights_on_rank(product, sharding_).evaluate(letters_);
      most = std::max(most, weights);
      all += weights;
    }
    const double each = (op.dequantized_through_fp16 ? 2.0 : 1.0) * static_cast<double>(size_of(Dtype::half));
    return each * Bytes(op.dequantized_apart ? most / op.merged : all);
  }

  // Returns bytes of an input's gradient while the op runs.
  [[nodiscard]] Bytes input_gradient(const Op& op, ValueId input) const {
    if (!op.input_gradient) return bytes_.shard(input);
    return (real(bits_of(*op.input_gradient)) / real(bits_of(kind_.ops[input].dtype))) * bytes_.shard(input);
  }

  // Returns bytes of an input that is gathered again for the weight gradient.
  [[nodiscard]] Bytes gathered_again(const Op& op, ValueId input) const {
    if (op.kind != OpKind::linear || sharding_.save_gathered_input) return Bytes(0);
    return bytes_.gathered_factor(op, input);
  }

  // Returns the first op of the table that saved the value or is recomputed from it. Its backward pass is the
  // last that needs the value.
  [[nodiscard]] int first_reader(ValueId value, const RecomputedOps& recomputed) const {
    const ValueUse use = use_of(kind_.ops, value);
    const OpSet savers = use.savers & ~receivers_of(kind_.ops, value, sharding_);
    const OpSet needed_by = savers | (use.readers & recomputed.ops);
    if (needed_by == 0) return kind_.ops[value].producer;  // a view into the same allocation is needed
    std::size_t op = 0;
    while ((needed_by & op_bit(op)) == 0) ++op;
    return static_cast<int>(op);
  }

 private:
  const LayerKind& kind_;
  TableBytes bytes_;
  const Sharding& sharding_;
  const Software& software_;
  const Bindings& letters_;
};

}  // namespace headroom
