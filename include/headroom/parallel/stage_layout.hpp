// Layouts of a pipeline's layers on its stages, and who can launch them. A layout is even if all
// virtual stages hold the same number of layers; every launcher chooses it by default. Any other layout is
// uneven and must be given to the launcher. Megatron-Core takes it as a string or, if that suffices, as the
// layers of the first and last pipeline rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"
#include "headroom/parallel/strategy.hpp"

namespace headroom {

enum class StageLayout : std::uint8_t { even, uneven };

// Layouts that may be used: only even ones, which any launcher can lay out, or all.
enum class Layouts : std::uint8_t { even, any };

// Returns the layout of `layers` layers under a strategy. Expects a legal strategy.
StageLayout stage_layout(std::int64_t layers, const Strategy& strategy);

// Returns the layers of the largest virtual stage. Expects a legal strategy.
std::int64_t longest_stage(std::int64_t layers, const Strategy& strategy);

// Load of the two ends of a model (embedding, output layer and loss), in layers; with several kinds, in mean
// layers. The load is FLOPs of GEMMs at the model's own sequence length. It is close to the time, needs no
// system, and is the same for every strategy. The embedding is a lookup and has no load.
struct EndLoads {
  double first = 0;
  double last = 0;
  friend bool operator==(const EndLoads&, const EndLoads&) = default;
};
EndLoads end_loads(const Transformer& model);

// Returns the layers of each of `stages` stages that make the heaviest stage lightest. Each layer goes to the
// stage whose load is then least. Ties go to the last stage but one and on backwards, since early stages keep
// the most microbatches. Adding a layer makes no stage lighter. Expects at least as many layers as stages.
std::vector<std::int64_t> balanced_layers(std::int64_t layers, std::int64_t stages, const EndLoads& ends);
// Returns the balanced layers if each stage may hold at most its own `most`. Returns nothing if all stages
// together cannot hold the layers, or if a stage cannot hold one layer.
std::optional<std::vector<std::int64_t>> balanced_layers(std::int64_t layers, const EndLoads& ends,
                                                         std::span<const std::int64_t> most);

// Returns the load of each layer, in mean layers, if layers are of several kinds. Returns nothing if all are
// alike.
std::vector<double> layer_loads(const Transformer& model);

// Returns the layers of each stage for layers of unequal loads. No other cut of the sequence of layers has a
// lighter heaviest stage. Within that limit, stages are as equal as possible, from the last one backwards.
// Expects at least as many layers as stages.
std::vector<std::int64_t> balanced_layers(std::span<const double> loads, std::int64_t stages,
                                          const EndLoads& ends);

// Returns the value of Megatron-Core's --pipeline-model-parallel-layout: "Et*7|(t*8|)*14,t*7,L". Bars
// separate stages, in the order of the model. E is the embedding, t a layer, m a layer of multi-token
// prediction, L the loss; x*n and (x)*n repeat [Megatron-LM,
// megatron/core/transformer/pipeline_parallel_layer_layout.py]. read_layout() (layout_text.hpp) reads this
// text.
std::string megatron_layout(std::span<const std::int64_t> layers_by_stage, std::int64_t mtp_layers = 0);

// Layers of the first and the last pipeline rank, if they determine the layout: all ranks in between hold
// equally many layers, and all virtual stages of a rank do, too [Megatron-LM,
// --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers;
// megatron/core/transformer/transformer_config.py].
struct EndRanks {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const EndRanks&, const EndRanks&) = default;
};
std::optional<EndRanks> end_ranks(std::span<const std::int64_t> layers_by_stage,
                                  std::int64_t pipeline_parallel);

// Returns the layers of each stage for the given end ranks, or the rule that they break. The other ranks
// share the remaining layers evenly. An end of 0 holds as many layers as the ranks in between. Expects sizes
// of at least 1.
std::variant<std::vector<std::int64_t>, std::string> layers_with_ends(const EndRanks& ends,
                                                                      std::int64_t layers,
                                                                      std::int64_t pipeline_parallel,
                                                                      std::int64_t virtual_pipeline);

template <>
inline constexpr std::array<Spelling<StageLayout>, 2> spellings<StageLayout>{{
    {StageLayout::even, "even"},
    {StageLayout::uneven, "uneven"},
}};
template <>
inline constexpr std::array<Spelling<Layouts>, 2> spellings<Layouts>{{
    {Layouts::even, "even"},
    {Layouts::any, "any"},
}};

}  // namespace headroom
