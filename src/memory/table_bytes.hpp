// Bytes of the values of one op table on one rank, as walks through forward and backward passes count them.
#pragma once

#include <vector>

#include "headroom/memory/backward.hpp"
#include "headroom/parallel/compose.hpp"

namespace headroom {

class TableBytes {
 public:
  TableBytes(const LayerKind& kind, const Sharding& sharding, const Bindings& letters)
      : table_(kind.ops), sharding_(sharding), letters_(letters) {
    shards_.reserve(table_.values().size());
    for (const Value& value : table_.values())
      shards_.push_back(number(bytes_on_rank(value, value.placement, sharding_)));
  }

  [[nodiscard]] Bytes number(const Monomial& bytes) const { return Bytes(bytes.evaluate(letters_)); }
  [[nodiscard]] Bytes shard(ValueId value) const { return shards_[static_cast<std::size_t>(value)]; }
  // Returns bytes of a value for the tokens of all tensor-parallel ranks, if a region that runs on 1/t needs
  // those of a sequence shard.
  [[nodiscard]] Bytes gathered(const Op& op, ValueId value, Dtype dtype) const {
    const bool sharded = sharding_.sequence && of(value).placement == Placement::boundary;
    return sharded && op.region == Placement::split ? number(whole_bytes(of(value), sharding_, dtype))
                                                    : Bytes(0);
  }
  // In the dtype of the op's GEMM.
  [[nodiscard]] Bytes gathered_factor(const Op& op, ValueId value) const {
    return gathered(op, value, multiplies_narrow(op) ? op.products[0].dtype : of(value).dtype);
  }

  // Return bytes of context-parallel exchanges around attention, beyond saved tensors and input gradients. A
  // ring has two buffers of keys and values and two of their gradients. The last of these holds the
  // gradients. The ring's forward pass keeps all that it received until it ends. Gathered keys and values are
  // whole, and so are their gradients. Tokens exchanged for heads have gradients in both orders [Transformer
  // Engine, context_parallel.py].
  [[nodiscard]] Bytes exchanged_forward(const Op& op) const {
    return exchanges(op) ? tokens_received(sharding_).evaluate(letters_) * related(op) : Bytes(0);
  }
  [[nodiscard]] Bytes exchanged_backward(const Op& op) const {
    if (!exchanges(op)) return Bytes(0);
    const bool ring = sharding_.cp_comm == CpComm::p2p || sharding_.cp_comm == CpComm::a2a_p2p;
    Bytes bytes;
    if (ring) bytes = attends_narrow(op) ? ring_of_narrow(op) : 3 * related(op);
    if (sharding_.cp_comm == CpComm::all_gather) bytes += 2 * exchanged_forward(op);
    if (changes_heads(sharding_)) {
      for (const ValueId value : op.inputs) bytes += shard_as(value, makes_narrow(op), op);
      bytes += shard_as(op.outputs[0], attends_narrow(op), op);
    }
    return bytes;
  }

 private:
  [[nodiscard]] const Value& of(ValueId value) const { return table_[value]; }
  [[nodiscard]] bool exchanges(const Op& op) const {
    return !op.of_all_tokens.empty() && divided_along(sharding_, ParallelAxis::context);
  }
  [[nodiscard]] Bytes shard_in(ValueId value, Dtype dtype) const {
    return number(whole_bytes(of(value), sharding_, dtype) * share(of(value).placement, sharding_));
  }
  // Returns bytes of a shard in the dtype of the op's GEMM, or in its own.
  [[nodiscard]] Bytes shard_as(ValueId value, bool narrow, const Op& op) const {
    return shard_in(value, narrow ? op.products[0].dtype : of(value).dtype);
  }
  // Returns bytes of the values that the op needs from all tokens, as received.
  [[nodiscard]] Bytes related(const Op& op) const {
    Bytes bytes;
    for (const ValueId value : op.of_all_tokens) bytes += shard_as(value, attends_narrow(op), op);
    return bytes;
  }
  // Returns bytes of a ring whose attention runs in fewer than 16 bits: keys and values that arrive, and
  // their gradients for and from every rank of the ring. Queries, keys and values each have an FP32 gradient,
  // to which each step adds. If the kernel writes gradients in fewer than 16 bits, each step has one. All of
  // them are then cast to FP32 to be summed [Transformer Engine, context_parallel.py,
  // AttnFuncWithCPAndKVP2P.backward].
  [[nodiscard]] Bytes ring_of_narrow(const Op& op) const {
    const double steps = tokens_received(sharding_).evaluate(letters_);
    const ValueId queries = op.inputs[0];
    Bytes sums = shard_in(queries, Dtype::fp32);
    for (const ValueId value : op.of_all_tokens) sums += shard_in(value, Dtype::fp32);
    if (makes_narrow(op)) sums = steps * (sums + shard_in(queries, op.products[0].dtype));
    return (1 + 2 * steps) * related(op) + sums;
  }

  const OpTable& table_;
  const Sharding& sharding_;
  const Bindings& letters_;
  std::vector<Bytes> shards_;  // by value
};

// As memory/forward.hpp, for a caller that has the bytes and the stored tensors already.
BackwardPeak forward_peak(const LayerKind& kind, const TableBytes& bytes, const StoredTensors& stored,
                          const RecomputedOps& recomputed);
BackwardPeak replay_peak(const LayerKind& kind, const TableBytes& bytes, const StoredTensors& stored,
                         const RecomputedOps& recomputed, Bytes working_set);

}  // namespace headroom
