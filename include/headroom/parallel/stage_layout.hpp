// How a pipeline's layers lie on its stages, and who can launch that. A layout is even where every virtual stage holds as
// many layers as any other, which every launcher does by itself; any other layout is uneven and has to be handed over:
// to Megatron-Core as a string, or as the layers of the first and last pipeline rank where these suffice.
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

// Which layouts may be used: those that any launcher lays, or all.
enum class Layouts : std::uint8_t { even, any };

// Of `layers` in all. Expects a legal strategy.
StageLayout stage_layout(std::int64_t layers, const Strategy& strategy);

// Layers of the virtual stage that holds most. Expects a legal strategy.
std::int64_t longest_stage(std::int64_t layers, const Strategy& strategy);

// What the ends of a model take beside its layers, counted in layers, of several kinds in their mean: by the FLOPs of their matrix products at the model's
// own sequence length, which is close to their time, known without a system, and the same for every strategy. The
// embedding looks rows up and takes none.
struct EndLoads {
  double first = 0;
  double last = 0;
  friend bool operator==(const EndLoads&, const EndLoads&) = default;
};
EndLoads end_loads(const Transformer& model);

// Layers of each of so many stages, so that none takes longer than it must: each layer goes where it makes the load
// least, among equals to the last but one, counting back, since early stages keep the most microbatches. One layer more
// makes no stage lighter. Expects at least as many layers as stages.
std::vector<std::int64_t> balanced_layers(std::int64_t layers, std::int64_t stages, const EndLoads& ends);
// The same where no stage may hold more than its own `most`, by stage; nothing where all together cannot hold them, or one
// cannot hold a layer.
std::optional<std::vector<std::int64_t>> balanced_layers(std::int64_t layers, const EndLoads& ends,
                                                         std::span<const std::int64_t> most);

// The same where layers are of several kinds: what each layer takes, as EndLoads counts it; none where all are alike.
std::vector<double> layer_loads(const Transformer& model);

// No way to lay such layers in a row has a lighter heaviest stage; beyond that stages are as alike as they get, from the
// last on. Expects at least as many layers as stages.
std::vector<std::int64_t> balanced_layers(std::span<const double> loads, std::int64_t stages,
                                          const EndLoads& ends);

// The value of Megatron-Core's --pipeline-model-parallel-layout: stages in the order of the model between bars, E the
// embedding, t a layer, L the loss; x*n and (x)*n repeat [Megatron-LM, megatron/core/transformer/
// pipeline_parallel_layer_layout.py]: "Et*7|(t*8|)*14,t*7,L". read_layout() (layout_text.hpp) reads one.
std::string megatron_layout(std::span<const std::int64_t> layers_by_stage, std::int64_t mtp_layers = 0);

// Layers of the first and the last pipeline rank, where that says all: in between every rank holds as many as the next,
// and the virtual stages of a rank as many as each other [Megatron-LM, --decoder-first-pipeline-num-layers and
// --decoder-last-pipeline-num-layers; megatron/core/transformer/transformer_config.py].
struct EndRanks {
  std::int64_t first = 0;
  std::int64_t last = 0;
  friend bool operator==(const EndRanks&, const EndRanks&) = default;
};
std::optional<EndRanks> end_ranks(std::span<const std::int64_t> layers_by_stage,
                                  std::int64_t pipeline_parallel);

// Returns the layers of each stage that such ends leave to the others, or the rule that they break. An end of 0 holds as many as the
// ranks between. Expects sizes of at least 1.
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
