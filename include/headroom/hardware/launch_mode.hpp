// How a training stack launches the kernels of a pass (time/launches.hpp): one by one, or as recorded CUDA
// graphs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"

namespace headroom {

// How kernels are launched outside graphs.
// eager: operation by operation, through Python, the framework's dispatcher and autograd.
// compiled: generated code for a whole layer launches its kernels one after another [torch.compile].
enum class Launches : std::uint8_t { eager, compiled };

// Work that is replayed as CUDA graphs [Megatron-Core, --cuda-graph-impl].
// layers: modules of every layer, each launched as one operation (local, transformer_engine).
// full_iteration: all passes of an iteration, launched as one operation.
enum class CudaGraphs : std::uint8_t { none, layers, full_iteration };

// Modules of a layer that a CUDA graph can record [Megatron-Core, --cuda-graph-modules, formerly
// --cuda-graph-scope].
// moe: the whole mixture of experts. Its shapes must be known before tokens are routed, so it needs
// capacities.
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

// CUDA graphs of a Megatron-Core run.
struct RecordedGraphs {
  std::optional<CudaGraphs> graphs;
  std::vector<GraphModule> modules;
};

// Returns the graphs that a value of --cuda-graph-impl records: none, local, transformer_engine or
// full_iteration. `local` and `transformer_engine` both record graphs of layers.
std::optional<CudaGraphs> graphs_by(std::string_view implementation);

// Returns the graphs that an implementation (if stated) and a scope record. The scope lists modules, or
// full_iteration. Other words in it add no module; a scope without modules stands for whole layers.
RecordedGraphs recorded_graphs(std::optional<CudaGraphs> implementation,
                               const std::vector<std::string>& scope);

}  // namespace headroom
