#include "headroom/hardware/launch_mode.hpp"

namespace headroom {

std::optional<CudaGraphs> graphs_by(std::string_view implementation) {
  if (implementation == "local" || implementation == "transformer_engine") return CudaGraphs::layers;
  return from_name<CudaGraphs>(implementation);
}

RecordedGraphs recorded_graphs(std::optional<CudaGraphs> implementation,
                               const std::vector<std::string>& scope) {
  if (implementation == CudaGraphs::none) return {.graphs = CudaGraphs::none, .modules = {}};
  RecordedGraphs result{.graphs = implementation, .modules = {}};
  for (const std::string& word : scope) {
    if (word == name_of(CudaGraphs::full_iteration)) result.graphs = CudaGraphs::full_iteration;
    if (const auto module = from_name<GraphModule>(word)) result.modules.push_back(*module);
  }
  if (result.graphs == CudaGraphs::full_iteration) result.modules.clear();
  return result;
}

}  // namespace headroom
