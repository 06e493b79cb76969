#include "headroom/time/op_work.hpp"

#include <algorithm>

#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"

namespace headroom {
namespace {

// The output layer is none of Transformer Engine's, and gathers before its product.
bool makes_logits(const OpTable& table) {
  const auto& ops = table.ops();
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::loss; });
}

}  // namespace

Setting setting_of(const Transformer& model, const Strategy& strategy, const Workload& workload,
                   std::int64_t devices_per_node, const Performance& performance, const Software& software) {
  return {.performance = performance,
          .software = software,
          .sharding = sharding_of(model, strategy),
          .letters = bindings(model, strategy, workload),
          .groups = Groups(axis_sizes(strategy), devices_per_node, context_inner(model, strategy)),
          .gradients = strategy.gradient_dtype,
          .sums_gradients = !reduces_in_passes(strategy, software),
          .precision = strategy.precision};
}

Setting setting_of(const KindSizes& sizes, const Setting& of_model) {
  Setting setting = of_model;
  const auto ranks = static_cast<std::int64_t>(of_model.letters[Symbol::tensor_parallel]);
  setting.sharding = sharding_of(sizes, of_model.sharding, ranks);
  setting.letters = bindings_of(sizes, of_model.letters);
  return setting;
}

TrafficOptions traffic_options(const Setting& setting) {
  return {.norm_backward = setting.software.norm_backward,
          .accumulation = setting.software.gradient_accumulation,
          .gradients = setting.gradients,
          .sums_gradients = setting.sums_gradients};
}

OpWork op_work(const OpTable& table, std::size_t op, const Collectives& inserted, const Setting& setting) {
  const Op& row = table.ops()[op];
  const Sharding& sharding = setting.sharding;
  const bool full = setting.software.overlap_tensor_parallel == TensorOverlap::full;
  OpWork work{.kind = row.kind,
              .overlaps = row.overlaps,
              .frozen = row.frozen,
              .experts = row.weights == WeightClass::expert && !row.products.empty(),
              .in_pieces = full && row.kind == OpKind::linear && !makes_logits(table)};
  for (const Collective& collective : inserted) {
    if (collective.op == static_cast<int>(op)) work.collectives.push_back(collective);
  }
  for (const MatrixProduct& product : row.products) {
    // The gradient of a value has its type; what is cast to be a factor is cast in the same kernel.
    ProductWork extents{.dtype = product.dtype,
                        .result = table[row.outputs[0]].dtype,
                        .left_gradient = table[row.inputs[0]].dtype,
                        .right_gradient = row.inputs.size() > 1 ? table[row.inputs[1]].dtype : Dtype::half,
                        .batch = on_rank(product.batch, sharding),
                        .rows = of_own_tokens(on_rank(product.rows, sharding), sharding),
                        .inner = on_rank(product.inner, sharding)};
    for (const Amount& outer : product.outer) extents.outer.push_back(on_rank(outer, sharding));
    work.products.push_back(extents);
  }
  if (row.kind == OpKind::flash_attention) {
    for (const ValueId input : row.inputs) {
      const bool all = row.of_all_tokens.contains(input);
      work.attention += detail::bytes_of(table[input], sharding) * (all ? tokens_received(sharding) : 1);
    }
    work.attention += detail::output_gradients(table, row, sharding);
  }
  const StreamingKernels forward = forward_traffic(table, row, sharding);
  const StreamingKernels backward = backward_traffic(table, row, sharding, traffic_options(setting));
  work.forward.assign(forward.begin(), forward.end());
  work.backward.assign(backward.begin(), backward.end());
  const Casts casts = forward_casts(table, row, sharding, setting.precision);
  const Casts casts_back = backward_casts(table, row, sharding, setting.precision);
  work.forward_casts.assign(casts.begin(), casts.end());
  work.backward_casts.assign(casts_back.begin(), casts_back.end());
  if (row.kind != OpKind::linear) return work;
  for (const ValueId output : row.outputs) {
    const Amount elements{table[output].elements, table[output].placement};
    if (!is_narrow(table[output].dtype)) work.made.emplace_back(output, on_rank(elements, sharding));
  }
  return work;
}

}  // namespace headroom
