#include "headroom/time/op_work.hpp"

#include <algorithm>
#include <optional>

#include "headroom/parallel/context.hpp"
#include "headroom/parallel/data_shards.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {
namespace {

// The output layer is not part of Transformer Engine, and gathers before its GEMM.
bool makes_logits(const OpTable& table) {
  const auto& ops = table.ops();
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::loss; });
}

// Returns the Megatron-Core module of an op; nothing outside layers. The router's module includes the
// normalization before it and shared experts. Ops before tokens leave their rank are preprocessing, unless
// tokens are sorted after the first exchange.
std::optional<GraphModule> graph_module(const OpTable& table, std::size_t op) {
  const auto& ops = table.ops();
  const auto place_of = [&](std::string_view name) {
    const auto found = std::find_if(ops.begin(), ops.end(), [&](const Op& it) { return it.name == name; });
    return static_cast<std::size_t>(found - ops.begin());
  };
  const std::size_t mixed = place_of("residual_1");
  const bool mixes = mixed < ops.size();
  const bool feeds = place_of("residual_2") < ops.size();
  if (!mixes && !feeds) return std::nullopt;  // not in a layer
  if (mixes && op <= mixed) {
    const auto scan = std::find_if(ops.begin(), ops.end(), [](const Op& it) { return it.scan != nullptr; });
    return scan == ops.end() ? GraphModule::attn : from_name<GraphModule>(scan->scan->graph_module).value();
  }
  const std::size_t routed = place_of("route");
  if (routed == ops.size()) return GraphModule::mlp;
  if (op <= routed || ops[op].name.starts_with("shared")) return GraphModule::moe_router;
  return op < place_of("dispatch") ? GraphModule::moe_preprocess : GraphModule::moe;
}

bool is_captured(const Software& software, GraphModule module) {
  const auto& modules = software.cuda_graph_modules;
  if (modules.empty()) return module != GraphModule::moe;
  return std::find(modules.begin(), modules.end(), module) != modules.end();
}

Launched launched(const OpTable& table, std::size_t op, const Software& software) {
  if (software.cuda_graphs == CudaGraphs::none) return Launched::alone;
  if (software.cuda_graphs == CudaGraphs::full_iteration) return Launched::in_graph;
  const std::optional<GraphModule> module = graph_module(table, op);
  if (!module || !is_captured(software, *module)) return Launched::alone;
  for (std::size_t before = 0; before < op; ++before) {
    if (graph_module(table, before) == module) return Launched::in_graph;
  }
  return Launched::first_of_graph;
}

}  // namespace

Setting setting_of(const Transformer& model, const Strategy& strategy, const Workload& workload,
                   std::int64_t devices_per_node, const Performance& performance, const Software& software) {
  return {.performance = performance,
          .software = software,
          .sharding = sharding_of(model, strategy),
          .letters = bindings(model, strategy, workload),
          .groups = Groups(axis_sizes(strategy), devices_per_node, context_inner(model, strategy)),
          .gradients = keeps_fp32_weights(model, strategy, software)
                           ? Dtype::fp32
                           : kept_gradient_dtype(strategy, workload, software),
          .sums_gradients = !reduces_in_passes(strategy, workload, software),
          .precision = strategy.precision,
          .dispatcher = strategy.moe_dispatcher,
          .scales = scale_group(strategy, devices_per_node)};
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
              .has_parts = row.kind == OpKind::loss && sharding.tensor && row.region == Placement::split,
              .in_pieces = full && row.kind == OpKind::linear && !makes_logits(table)};
  work.scan = row.scan;
  work.launched = launched(table, op, setting.software);
  work.operators = row.operators;
  work.host_waits = row.host_waits && setting.software.cuda_graphs != CudaGraphs::full_iteration;
  work.experts_of_rank = on_rank({symbols::E, Placement::experts}, sharding);
  for (const Collective& collective : inserted) {
    if (collective.op == static_cast<int>(op)) work.collectives.push_back(collective);
  }
  for (const MatrixProduct& product : row.products) {
    const Monomial inner = on_rank(product.inner, sharding);
    // A value's gradient has the value's dtype. Casts of operands run in the same kernel.
    ProductWork extents{.dtype = product.dtype,
                        .result = table[row.outputs[0]].dtype,
                        .left_gradient = table[row.inputs[0]].dtype,
                        .right_gradient = row.inputs.size() > 1 ? table[row.inputs[1]].dtype : Dtype::half,
                        .batch = on_rank(product.batch, sharding),
                        .rows = of_own_tokens(on_rank(product.rows, sharding), sharding),
                        .inner = product.sums_tokens ? of_own_tokens(inner, sharding) : inner};
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
  work.forward = forward_traffic(table, row, sharding);
  work.backward = backward_traffic(table, row, sharding, traffic_options(setting));
  work.forward_casts = forward_casts(table, row, sharding, setting.precision);
  work.backward_casts = backward_casts(table, row, sharding, setting.precision);
  if (row.kind != OpKind::linear) return work;
  for (const ValueId output : row.outputs) {
    const Amount elements{table[output].elements, table[output].placement};
    if (!is_narrow(table[output].dtype)) work.made.emplace_back(output, on_rank(elements, sharding));
  }
  return work;
}

}  // namespace headroom
