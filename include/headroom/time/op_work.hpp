// Symbolic work of one op of a table on one rank (compute, memory traffic, exchanges), and the setting that
// prices it.
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

// Everything that a cost depends on beside the op. A setting refers to the objects it was made from.
struct Setting {
  const Performance& performance;
  const Software& software;
  Sharding sharding;
  Bindings letters;
  Groups groups;
  Dtype gradients = Dtype::fp32;
  bool sums_gradients = true;  // TrafficOptions
  Precision precision = Precision::bf16;
  Dispatcher dispatcher = Dispatcher::alltoall;  // of expert tokens
  std::optional<Group> scales;                   // ranks that share scales (time/scales.hpp)
};

Setting setting_of(const Transformer& model, const Strategy& strategy, const Workload& workload,
                   std::int64_t devices_per_node, const Performance& performance, const Software& software);

// Returns the setting in layers of a kind.
Setting setting_of(const KindSizes& sizes, const Setting& of_model);

// Returns the part of a setting that changes memory traffic.
TrafficOptions traffic_options(const Setting& setting);

// Extents of a rank's GEMMs, the dtype of their operands, and the dtypes of the values they make: the result
// and the gradients of both operands. A weight's gradient has the weight's dtype.
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

// How the host launches an op: on its own, as the first op of a graph, or within a graph.
enum class Launched : std::uint8_t { alone, first_of_graph, in_graph };

// Symbolic work of an op: a rank's kernels and collectives, valid for every t, b and s that shards this way.
struct OpWork {
  OpKind kind = OpKind::elementwise;
  bool overlaps = false;
  bool frozen = false;     // no gradient of its weights is computed
  bool experts = false;    // its GEMMs are of experts, one for each
  bool has_parts = false;  // a loss whose logits are a part of the vocabulary
  bool in_pieces = false;  // GEMMs and their collectives can overlap in pieces
  std::vector<Collective> collectives;
  std::vector<ProductWork> products;
  const ScanKernels* scan = nullptr;
  Expr attention;  // bytes of flash attention's inputs and output gradients
  std::vector<StreamingKernel> forward;
  std::vector<StreamingKernel> backward;
  Launched launched = Launched::alone;
  SmallOperators operators;
  bool host_waits = false;  // for the device, before it launches the op
  Monomial experts_of_rank;
  std::vector<Cast> forward_casts;
  std::vector<Cast> backward_casts;
  std::vector<std::pair<ValueId, Monomial>> made;  // outputs of a linear and their elements on a rank
};

// Returns the work of an op. `inserted` are the collectives of the whole table.
OpWork op_work(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting);

}  // namespace headroom
