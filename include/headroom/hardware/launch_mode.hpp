// How the host of a training stack launches the kernels of a pass (time/launches.hpp): one by one, or as graphs that were recorded
// before.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"

namespace headroom {

// eager: operation by operation, through Python, the framework's dispatcher and autograd. compiled: code that was generated for
// the whole of a layer launches one kernel after another [torch.compile].
enum class Launches : std::uint8_t { eager, compiled };

// What is replayed as CUDA graphs [Megatron-Core, --cuda-graph-impl]. layers: modules of every layer, each launched as one operation
// (local, transformer_engine). full_iteration: all passes of an iteration, launched as one.
enum class CudaGraphs : std::uint8_t { none, layers, full_iteration };

// Modules of a layer that graphs can be of [Megatron-Core, --cuda-graph-modules, formerly --cuda-graph-scope]. moe: all of a mixture
// of experts, whose shapes must then be known before tokens are routed: with capacities, not without.
enum class GraphModule : std::uint8_t { attn, mamba, mlp, moe_router, moe_preprocess, moe };

template <>
inline constexpr std::array<Spelling<Launches>, 2> spellings<Launches>{{
    {Launches::eager, "eager"},
    {Launches::compiled, "compiled"},
}};
template <>
inline constexpr std::array<Spelling<CudaGraphs>, 3> spellings<CudaGraphs>{{
    {CudaGraphs::none, "none"},
    {CudaGraphs::layers, "layers"},
    {CudaGraphs::full_iteration, "full_iteration"},
}};
template <>
inline constexpr std::array<Spelling<GraphModule>, 6> spellings<GraphModule>{{
    {GraphModule::attn, "attn"},
    {GraphModule::mamba, "mamba"},
    {GraphModule::mlp, "mlp"},
    {GraphModule::moe_router, "moe_router"},
    {GraphModule::moe_preprocess, "moe_preprocess"},
    {GraphModule::moe, "moe"},
}};

// Graphs in Megatron-Core's words.
struct RecordedGraphs {
  std::optional<CudaGraphs> graphs;
  std::vector<GraphModule> modules;
};

// Of --cuda-graph-impl: none, local, transformer_engine, full_iteration; what records graphs of layers makes no difference.
std::optional<CudaGraphs> graphs_by(std::string_view implementation);

// Of an implementation, if one is stated, and of what it records: modules, or the full_iteration. Other words are of all of a layer.
RecordedGraphs recorded_graphs(std::optional<CudaGraphs> implementation,
                               const std::vector<std::string>& scope);

}  // namespace headroom
