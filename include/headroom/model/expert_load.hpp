// Imbalance of routing: the load of the busiest rank, over the mean.
//
// The demand for experts follows a power law: the i-th most wanted expert receives i^-0.173 of the load of
// the most wanted one. The exponent is assumed. It comes from a mixture of 64 experts trained with an
// auxiliary loss, whose most wanted expert received 1.72 times the mean [Wang et al., arXiv:2408.15664, table
// 2: MaxVio 0.72]. A router without an auxiliary loss, or at the start of training, can be worse. In that
// case, state the load as a number.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// Placement of the experts on ranks. typical: the median load of the busiest rank over all placements. worst:
// the load of the placement where one rank holds the most wanted experts together.
enum class ExpertLoad : std::uint8_t { balanced, typical, worst };

// Load of the busiest rank in every layer: a stated factor, or a named load.
struct MoeImbalance {
  double factor = 1;  // load factor if `balanced` (default 1)
  ExpertLoad load = ExpertLoad::balanced;
  friend bool operator==(const MoeImbalance&, const MoeImbalance&) = default;
};

inline constexpr double expert_power_law = 0.173;

// Returns the load of the busiest of `ranks` ranks, over the mean. Expects `ranks` to divide `experts`. At
// least 1; 1 on one rank.
double fullest_rank(ExpertLoad load, std::int64_t experts, std::int64_t ranks);

// Returns the load of the busiest rank for the model's experts, limited by their capacity. If several kinds
// of layers have experts, returns the largest load. Without experts, returns the stated
// factor (default 1).
double fullest_rank(const MoeImbalance& imbalance, const Transformer& model, std::int64_t ranks);

// Returns the largest capacity factor of the model's layers, or 1 if no layer has one.
double capacity_factor(const Transformer& model);

template <>
inline constexpr std::array<Spelling<ExpertLoad>, 3> spellings<ExpertLoad>{{
    {ExpertLoad::balanced, "balanced"},
    {ExpertLoad::typical, "typical"},
    {ExpertLoad::worst, "worst"},
}};

}  // namespace headroom
