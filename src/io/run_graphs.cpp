#include "run_graphs.hpp"

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"

namespace headroom {
StatedGraphs graphs_of(const Json& run) {
  const auto member = [](const Json& of, const char* name) -> const Json* {
    return of.is_object() && of.contains(name) ? &of.at(name) : nullptr;
  };
  const Json* const stated = member(run, "cuda_graphs");
  if (stated == nullptr) return {};
  const std::string rule = "must be false, none, full_iteration, or an object with impl and scope";
  if (stated->is_boolean() && !stated->get<bool>())
    return {.recorded = recorded_graphs(CudaGraphs::none, {}), .rule = {}};
  const Json* const by = stated->is_object() ? member(*stated, "impl") : stated;
  if (by == nullptr || !by->is_string()) return {.recorded = {}, .rule = rule};
  const std::optional<CudaGraphs> implementation = graphs_by(by->get<std::string>());
  if (!implementation) return {.recorded = {}, .rule = rule};
  std::vector<std::string> scope;
  const Json* const names = member(*stated, "scope");
  if (names != nullptr && names->is_array()) {
    for (const Json& name : *names) {
      if (name.is_string()) scope.push_back(name.get<std::string>());
    }
  }
  return {.recorded = recorded_graphs(implementation, scope), .rule = {}};
}

void choices_of_embedded(MeasuredRun& run) {
  if (find_embedded("model", run.model_name) == nullptr) return;
  const Transformer model = read_model(run.model_name);
  const bool same = model.layers == run.layers && model.hidden == run.hidden && model.heads == run.heads;
  if (!same) return;
  const Architecture& architecture = model.architecture;
  run.linear_bias = run.linear_bias.value_or(architecture.linear_bias);
  run.clamped_activation = run.clamped_activation.value_or(architecture.clamped_activation);
  run.scaled_rotary = run.scaled_rotary.value_or(architecture.scaled_rotary);
}

}  // namespace headroom
