// Tables of ops: the values that flow between ops, what each op computes, and which values it saves for its
// backward pass. layer_ops.hpp and ends_ops.hpp have the tables.
//
// Sizes are those of the undivided model, in symbols. A Placement says how tensor parallelism divides them.
// parallel/compose.hpp applies it when it composes a table with a strategy.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "headroom/core/dtype.hpp"
#include "headroom/core/fixed_vector.hpp"
#include "headroom/expr/expr.hpp"
#include "headroom/model/detail.hpp"
#include "headroom/model/exchange.hpp"
#include "headroom/model/scan.hpp"

namespace headroom {

// Division of a value. whole: every TP rank holds all of it. boundary: every TP rank holds all of it, or a
// sequence shard with sequence parallelism. split: each rank holds 1/t. kv_split: split over the key/value
// heads, of which a rank holds at least one: 1/t, or 1/k where k < t.
//
// Experts are divided along axes of their own. experts: the experts of a layer, 1/y. expert_split: the width
// of each expert, 1/z. routed: tokens of an expert rank, on which its z ranks all compute: the share of a
// sequence shard, times z. expert_rows: tokens gathered from all expert ranks: y times as many as routed.
enum class Placement : std::uint8_t {
  whole,
  boundary,
  split,
  kv_split,
  experts,
  expert_split,
  routed,
  expert_rows
};

enum class OpKind : std::uint8_t {
  normalization,
  linear,
  batched_matmul,
  softmax,
  flash_attention,
  scan,          // over a sequence, its convolution included
  mask_product,  // moves tokens by a product with a mask
  elementwise,
  copy,
  embedding,
  loss,
  transfer,  // no kernel: what its exchanges bring
};

using ValueId = int;

struct Value {
  std::string_view name;
  Monomial elements;
  Dtype dtype = Dtype::half;
  Placement placement = Placement::boundary;
  Detail detail = Detail::paper;
  bool tensor_parallel_only = false;  // exists only when t > 1
  int buffer = nowhere;               // values that are views into one allocation live and die together
  int producer = nowhere;             // index of the op that makes it; nowhere: comes from outside the table
  int held_until =
      nowhere;  // an op until whose end of a forward pass the code that calls it refers to the value
  friend bool operator==(const Value&, const Value&) = default;
};

// A value saved for the backward pass, and the reason.
struct Save {
  ValueId value = nowhere;
  std::string_view why;
  friend bool operator==(const Save&, const Save&) = default;
};

// A count that tensor parallelism divides as the placement says: parameters, FLOPs, an extent of a matrix.
struct Amount {
  Monomial count;
  Placement placement = Placement::split;
  friend bool operator==(const Amount&, const Amount&) = default;
};

// Parts of a GEMM's outer extent, side by side: q beside k and v, for example, since tensor parallelism may
// divide them differently.
using OuterExtents = FixedVector<Amount, 3>;

// GEMMs, `batch` of them, each [rows x inner] [inner x outer]. The shape determines the FLOPs, the weights of
// a linear (of each of the batch, which are experts), and the GEMMs of the backward pass. The gradient of the
// left factor is [rows x outer] [outer x inner], that of the right factor [outer x rows] [rows x inner].
struct MatrixProduct {
  Amount batch{1, Placement::whole};
  Amount rows{1, Placement::whole};
  Amount inner{1, Placement::whole};
  OuterExtents outer{};
  Dtype dtype = Dtype::half;  // of its factors
  bool sums_tokens = false;   // the inner extent is of a rank's tokens
  friend constexpr bool operator==(const MatrixProduct& x, const MatrixProduct& y) {
    if (!(x.batch == y.batch && x.rows == y.rows && x.inner == y.inner && x.dtype == y.dtype)) return false;
    if (x.sums_tokens != y.sums_tokens) return false;
    if (x.outer.size() != y.outer.size()) return false;
    for (std::size_t i = 0; i < x.outer.size(); ++i) {
      if (!(x.outer[i] == y.outer[i])) return false;
    }
    return true;
  }
};

// Memory traffic that no value of the table shows: a kernel that reorders, or a chain that reads its values
// several times. All other traffic follows from the values that an op reads, makes and saves
// (time/traffic.hpp).
struct Traffic {
  std::string_view name;
  Monomial elements;
  Placement placement = Placement::boundary;
  std::int64_t forward = 0;  // bytes an element, read and written
  std::int64_t backward = 0;
  int forward_kernels = 1;  // number of kernels that move the bytes
  int backward_kernels = 1;
  bool by_expert = false;  // as many for each expert of a rank, by plain operators of the framework
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// Additional framework operators of an op, on so little data that each takes as long as the shortest kernel.
struct SmallOperators {
  int forward = 0;
  int backward = 0;
  friend bool operator==(const SmallOperators&, const SmallOperators&) = default;
};
constexpr SmallOperators operator+(const SmallOperators& x, const SmallOperators& y) {
  return {x.forward + y.forward, x.backward + y.backward};
}

// Outputs of an op, with masks, statistics and a low-precision copy for each linear that reads an output.
using Outputs = FixedVector<ValueId, 12>;

struct Op {
  std::string_view name;
  OpKind kind = OpKind::elementwise;
  Placement region = Placement::boundary;  // boundary: on whole or sequence-sharded values; split: on 1/t
  bool core_attention = false;             // recomputed by selective recomputation [K22 figure 3]
  FixedVector<ValueId, 4> inputs{};
  Outputs outputs{};
  FixedVector<Save, 8> saves{};
  FixedVector<MatrixProduct, 3> products{};  // of the forward pass; K22 appendix A counts their FLOPs
  FixedVector<Amount, 4> parameters{};       // beside the weights of a linear's products
  FixedVector<Traffic, 4> traffic{};
  bool adds = false;  // the last input is added, so that its gradient is the output's, without a kernel
  FixedVector<Exchange, 6> exchanges{};
  FixedVector<ValueId, 2> of_all_tokens{};  // inputs that it needs of all tokens of a sequence
  int statistics = 0;     // sums over the hidden dimension that its passes need, for each token
  bool overlaps = false;  // collectives before it may run beside its products
  WeightClass weights = WeightClass::dense;
  bool in_place = false;  // its backward pass writes the gradient of its input over what it saved
  FixedVector<ValueId, 4> temporaries{};  // allocated only during its backward pass
  std::optional<Dtype> input_gradient{};  // while its backward pass runs, where it is not the input's dtype
  bool always_half = false;     // its products are of 16 bits, whatever the precision of a model's linears
  bool shares_weights = false;  // they are another op's, and counted there
  bool weights_at_half =
      false;            // they stay at 16 bits beside copies of fewer, whatever --fp8-param-gather is of
  bool frozen = false;  // its weights, or its mask, have no gradient
  // Bytes of a quantized weight, dequantized to BF16 at each use; 0: not quantized (model/adapters.hpp).
  Rational quantized{};
  bool dequantized_apart = false;         // merged linears are separate: one is dequantized at a time
  bool dequantized_through_fp16 = false;  // to FP16 first, and from there to BF16
  bool reads_gathered = false;            // its input as an op before it gathered that, which it keeps so
  SmallOperators operators{};
  bool host_waits = false;            // before it, for numbers that the device has made
  int merged = 1;                     // linears of equal width whose outputs stand side by side in its output
  bool unfused = false;               // operators of the framework in a row: `traffic` has all that they move
  const ScanKernels* scan = nullptr;  // of a scan
};

constexpr bool is_quantized(const Op& op) { return op.quantized != Rational(); }

// Returns whether the op's weights are factors of GEMMs in fewer than 16 bits.
constexpr bool multiplies_narrow(const Op& op) {
  return op.kind == OpKind::linear && !op.products.empty() && is_narrow(op.products[0].dtype);
}

// Returns whether the op is attention with GEMMs in fewer than 16 bits.
constexpr bool attends_narrow(const Op& op) {
  return op.kind == OpKind::flash_attention && is_narrow(op.products[0].dtype);
}

// Returns whether narrow attention also computes its results and their gradients in the narrow dtype. It then
// saves its own copy of the context instead of the 16-bit one.
constexpr bool makes_narrow(const Op& op) {
  if (!attends_narrow(op)) return false;
  for (const Save& save : op.saves) {
    if (save.value == op.outputs[0]) return false;
  }
  return true;
}

class OpTable {
 public:
  // Limits of a table: twice the 45 ops and 100 values of a mixture of experts behind latent attention.
  // Building a larger table fails. Nothing else depends on the two numbers.
  static constexpr std::size_t max_ops = 96;
  static constexpr std::size_t max_values = 192;

  constexpr ValueId value(const Value& value) {
    EXPECTS(values_.size() < max_values);
    values_.push_back(value);
    return static_cast<ValueId>(values_.size()) - 1;
  }

  // Appends an op and makes it the producer of its outputs.
  constexpr void op(const Op& op) {
    EXPECTS(ops_.size() < max_ops);
    for (const ValueId output : op.outputs) {
      values_[static_cast<std::size_t>(output)].producer = static_cast<int>(ops_.size());
    }
    ops_.push_back(op);
  }

  // Removes a value from the allocation that it shares with others.
  constexpr void forget_buffer(ValueId id) { values_[static_cast<std::size_t>(id)].buffer = nowhere; }

  // Marks a value as held until the end of the last op so far, because the calling code refers to it.
  constexpr void hold(ValueId id) {
    if (id == nowhere) return;
    values_[static_cast<std::size_t>(id)].held_until = static_cast<int>(ops_.size()) - 1;
  }

  // Values that are views into one allocation keep all of it alive, not only at Detail::exact.
  constexpr void keep_views() { keeps_views_ = true; }
  [[nodiscard]] constexpr bool keeps_views() const { return keeps_views_; }

  // Returns the op for changes.
  constexpr Op& change(std::size_t op) { return ops_[op]; }

  [[nodiscard]] constexpr const auto& ops() const { return ops_; }
  [[nodiscard]] constexpr const auto& values() const { return values_; }
  [[nodiscard]] constexpr const Value& operator[](ValueId id) const {
    return values_[static_cast<std::size_t>(id)];
  }

 private:
  std::vector<Op> ops_;
  std::vector<Value> values_;
  bool keeps_views_ = false;
};

template <>
inline constexpr std::array<Spelling<Placement>, 8> spellings<Placement>{{
    {Placement::whole, "whole"},
    {Placement::boundary, "boundary"},
    {Placement::split, "split"},
    {Placement::kv_split, "kv_split"},
    {Placement::experts, "experts"},
    {Placement::expert_split, "expert_split"},
    {Placement::routed, "routed"},
    {Placement::expert_rows, "expert_rows"},
}};
template <>
inline constexpr std::array<Spelling<OpKind>, 12> spellings<OpKind>{{
    {OpKind::normalization, "normalization"},
    {OpKind::linear, "linear"},
    {OpKind::batched_matmul, "batched_matmul"},
    {OpKind::softmax, "softmax"},
    {OpKind::flash_attention, "flash_attention"},
    {OpKind::scan, "scan"},
    {OpKind::mask_product, "mask_product"},
    {OpKind::elementwise, "elementwise"},
    {OpKind::copy, "copy"},
    {OpKind::embedding, "embedding"},
    {OpKind::loss, "loss"},
    {OpKind::transfer, "transfer"},
}};

}  // namespace headroom
