#include "run_graphs.hpp"

#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"

namespace headroom {
namespace {

std::optional<CudaGraphs> implementation(const std::string& name) {
  if (name == "local" || name == "transformer_engine") return CudaGraphs::layers;
  return from_name<CudaGraphs>(name);
}

}  // namespace

StatedGraphs graphs_of(const Json& run) {
  const auto member = [](const Json& of, const char* name) -> const Json* {
    return of.is_object() && of.contains(name) ? &of.at(name) : nullptr;
  };
  const Json* const stated = member(run, "cuda_graphs");
  if (stated == nullptr) return {};
  const std::string rule = "must be none, full_iteration, or an object with impl and scope";
  const Json* const by = stated->is_object() ? member(*stated, "impl") : stated;
  if (by == nullptr || !by->is_string()) return {.graphs = {}, .modules = {}, .rule = rule};
  StatedGraphs result{.graphs = implementation(by->get<std::string>()), .modules = {}, .rule = {}};
  if (!result.graphs) return {.graphs = {}, .modules = {}, .rule = rule};
  const Json* const scope = member(*stated, "scope");
  if (scope == nullptr || !scope->is_array()) return result;
  for (const Json& name : *scope) {
    if (!name.is_string()) continue;
    const auto word = name.get<std::string>();
    if (word == "full_iteration") result.graphs = CudaGraphs::full_iteration;
    const auto module =
        from_name<GraphModule>(word);  // others are of layers that no model here has, or of all
    if (module) result.modules.push_back(*module);
  }
  return result;
}

std::optional<bool> bias_of_embedded(const std::string& name, const MeasuredRun& run) {
  if (find_embedded("model", name) == nullptr) return std::nullopt;
  const Transformer model = read_model(name);
  const bool same = model.layers == run.layers && model.hidden == run.hidden && model.heads == run.heads;
  if (!same) return std::nullopt;
  return model.architecture.linear_bias;
}

}  // namespace headroom
