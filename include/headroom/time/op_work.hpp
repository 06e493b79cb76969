// What one op of a table computes, moves and exchanges on one rank, in symbols; and the setting in which it has a cost.
#pragma once

#include <optional>
#include <vector>

#include "headroom/parallel/collectives.hpp"
#include "headroom/time/casts.hpp"
#include "headroom/time/collective.hpp"
#include "headroom/time/gemm.hpp"
#include "headroom/time/scales.hpp"
#include "headroom/time/traffic.hpp"

namespace headroom {

// What a cost depends on beside the op. Refers to what it was made from.
struct Setting {
  const Performance& performance;
  const Software& software;
  Sharding sharding;
  Bindings letters;
  Groups groups;
  Dtype gradients = Dtype::fp32;
  bool sums_gradients = true;  // TrafficOptions
  Precision precision = Precision::bf16;
  Dispatcher dispatcher = Dispatcher::alltoall;  // of the tokens of experts
  std::optional<Group> scales;                   // that agree on the scales of a pass (time/scales.hpp)
};

Setting setting_of(const Transformer& model, const Strategy& strategy, const Workload& workload,
                   std::int64_t devices_per_node, const Performance& performance, const Software& software);

// In layers of a kind.
Setting setting_of(const KindSizes& sizes, const Setting& of_model);

// What of it changes traffic.
TrafficOptions traffic_options(const Setting& setting);

// Extents of the products of matrices of one rank, the type that they are multiplied in, and those of the values that
// they make: the product, and the gradients of its two factors. That of weights has the weights' type.
struct ProductWork {
  Dtype dtype = Dtype::half;
  Dtype result = Dtype::half;
  Dtype left_gradient = Dtype::half;
  Dtype right_gradient = Dtype::half;
  Monomial batch;
  Monomial rows;
  Monomial inner;
  FixedVector<Monomial, 3> outer;
};

// How the host launches an op: by itself, as the first of a graph of several ops, or within one.
enum class Launched : std::uint8_t { alone, first_of_graph, in_graph };

// What an op computes and moves, in symbols: a rank's kernels and collectives for all t, b and s that shard alike.
struct OpWork {
  OpKind kind = OpKind::elementwise;
  bool overlaps = false;
  bool frozen = false;     // no gradient of its weights is made
  bool experts = false;    // its products are of experts, one for each
  bool has_parts = false;  // of a loss: its logits are a part of the vocabulary
  bool in_pieces = false;  // its products and their collectives can run beside each other piece by piece
  std::vector<Collective> collectives;
  std::vector<ProductWork> products;
  Expr attention;  // bytes of flash attention: its inputs, and the gradients of its outputs
  std::vector<StreamingKernel> forward;
  std::vector<StreamingKernel> backward;
  Launched launched = Launched::alone;
  SmallOperators operators;
  bool host_waits = false;  // before the op is launched, for the device
  Monomial experts_of_rank;
  std::vector<Cast> forward_casts;
  std::vector<Cast> backward_casts;
  std::vector<std::pair<ValueId, Monomial>> made;  // of a linear: its outputs and their elements on a rank
};

// `inserted` are the collectives of the whole table.
OpWork op_work(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting);

}  // namespace headroom
