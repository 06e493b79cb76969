// Axes of parallelism: their names, their letters and what each divides.
//
// A new axis needs a row here, a field of Strategy for its size (parallel/axes.hpp reads it), and the
// collectives that it inserts into an op table (model/exchange.hpp). Groups of ranks, shares, communicators
// and reserves follow from these.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "headroom/core/names.hpp"

namespace headroom {

enum class ParallelAxis : std::uint8_t { tensor, context, expert_tensor, expert, data, pipeline };

// Dimension that the ranks of an axis share.
// tokens: of every sequence. weights: of every matrix outside experts. expert_weights: of every matrix of an
// expert.
// experts: of a layer. layers: of the model. replicas: parts of the batch.
enum class Divides : std::uint8_t { tokens, weights, expert_weights, experts, layers, replicas };

struct AxisRow {
  ParallelAxis axis;
  std::string_view name;
  char letter;
  Divides divides;
};

inline constexpr std::size_t axis_count = 6;

// Axes in the order in which ranks are numbered, fastest first [Megatron-LM, core/parallel_state.py,
// tp-cp-ep-dp-pp]. Ranks of experts have numbers of their own within a pipeline rank: expert_tensor, expert,
// and the remaining replicas.
inline constexpr std::array<AxisRow, axis_count> parallel_axes{{
    {ParallelAxis::tensor, "tensor", 't', Divides::weights},
    {ParallelAxis::context, "context", 'c', Divides::tokens},
    {ParallelAxis::expert_tensor, "expert_tensor", 'z', Divides::expert_weights},
    {ParallelAxis::expert, "expert", 'y', Divides::experts},
    {ParallelAxis::data, "data", 'd', Divides::replicas},
    {ParallelAxis::pipeline, "pipeline", 'p', Divides::layers},
}};

constexpr const AxisRow& row_of(ParallelAxis axis) { return parallel_axes[static_cast<std::size_t>(axis)]; }

// Ranks of an axis that a collective joins: all of them, the ranks of one part of the group, or one rank of
// each part.
enum class GroupPart : std::uint8_t { whole, inner, outer };

// Classes of weights by the ranks that reduce their gradients. Data-parallel groups of experts are smaller
// than those of other weights.
enum class WeightClass : std::uint8_t { dense, expert };
inline constexpr std::size_t weight_classes = 2;

template <>
inline constexpr std::array<Spelling<ParallelAxis>, axis_count> spellings<ParallelAxis>{{
    {ParallelAxis::tensor, parallel_axes[0].name},
    {ParallelAxis::context, parallel_axes[1].name},
    {ParallelAxis::expert_tensor, parallel_axes[2].name},
    {ParallelAxis::expert, parallel_axes[3].name},
    {ParallelAxis::data, parallel_axes[4].name},
    {ParallelAxis::pipeline, parallel_axes[5].name},
}};
template <>
inline constexpr std::array<Spelling<WeightClass>, weight_classes> spellings<WeightClass>{{
    {WeightClass::dense, "dense"},
    {WeightClass::expert, "expert"},
}};

}  // namespace headroom
