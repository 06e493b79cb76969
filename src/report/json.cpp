#include "report/json.hpp"

#include <cmath>

#include "io/file_formats.hpp"

namespace headroom {
namespace {

// A file's members behind the name under which it was asked for.
OrderedJson named(const std::string& name, OrderedJson file) {
  OrderedJson json{{"name", name}};
  file.erase("format");
  json.update(file);
  return json;
}

}  // namespace

OrderedJson number(double value) {
  constexpr double exact_integers = 9007199254740992.0;  // 2^53
  if (value == std::floor(value) && std::abs(value) <= exact_integers)
    return static_cast<std::int64_t>(value);
  return value;
}

OrderedJson to_json(const Transformer& model) { return named(model.name, json_of(model)); }

OrderedJson to_json(const System& system) { return named(system.name, json_of(system)); }

OrderedJson to_json(const Software& software) { return named(software.name, json_of(software)); }

OrderedJson to_json(const Strategy& strategy) {
  const Recomputation& recompute = strategy.recompute;
  return {{"devices", devices(strategy)},
          {"tensor_parallel", strategy.tensor_parallel},
          {"pipeline_parallel", strategy.pipeline_parallel},
          {"virtual_pipeline", strategy.virtual_pipeline},
          {"data_parallel", strategy.data_parallel},
          {"micro_batch", strategy.micro_batch},
          {"sequence_parallel", strategy.sequence_parallel},
          {"regather", strategy.regather},
          {"recompute",
           {{"policy", name_of(recompute.policy)},
            {"method", name_of(recompute.method)},
            {"layers", recompute.layers},
            {"shard_checkpoint", recompute.shard_checkpoint},
            {"window", recompute.window},
            {"ops", recompute.ops}}},
          {"schedule", name_of(strategy.schedule)},
          {"deallocate_outputs", strategy.deallocate_outputs},
          {"distributed_optimizer", strategy.distributed_optimizer},
          {"gradients", name_of(strategy.gradients)},
          {"stage_layers", strategy.stage_layers}};
}

OrderedJson to_json(const Workload& workload, const Strategy& strategy) {
  return {{"global_batch", workload.global_batch},
          {"sequence", workload.sequence},
          {"microbatches", microbatches(strategy, workload)}};
}

std::string to_text(const OrderedJson& json) { return json.dump(2) + '\n'; }

}  // namespace headroom
