// How unevenly the experts of a layer are wanted, and what the fullest rank gets of it: its share of the rows, times the mean.
//
// The experts of a layer are wanted by a power law: the i-th most wanted one by i^-0.173 of the most wanted one. The exponent is
// assumed from a mixture of 64 experts trained with an auxiliary loss, whose most wanted one received 1.72 times the mean [Wang et
// al., arXiv:2408.15664, table 2: MaxVio 0.72]. A router without such a loss, or one that has just begun, can be worse: then the
// load is to be stated as a number.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

// typical: the median of the fullest rank's load over placements of the experts on ranks. worst: of all placements the fullest, a
// rank that has the most wanted experts together.
enum class ExpertLoad : std::uint8_t { balanced, typical, worst };

// Of the rank whose experts are wanted most, in every layer: a factor that somebody states, or what a load comes to.
struct MoeImbalance {
  double factor = 1;  // of `balanced`, which is 1 unless it is stated
  ExpertLoad load = ExpertLoad::balanced;
  friend bool operator==(const MoeImbalance&, const MoeImbalance&) = default;
};

inline constexpr double expert_power_law = 0.173;

// Of `experts` over so many ranks, which divide them. At least 1; 1 on one rank.
double fullest_rank(ExpertLoad load, std::int64_t experts, std::int64_t ranks);

// Of the model's experts over so many ranks, cut by their capacity; of several kinds of layers with experts, the most. 1 without
// experts.
double fullest_rank(const MoeImbalance& imbalance, const Transformer& model, std::int64_t ranks);

// The largest of a model's layers that have one; 1 where none has.
double capacity_factor(const Transformer& model);

template <>
inline constexpr std::array<Spelling<ExpertLoad>, 3> spellings<ExpertLoad>{{
    {ExpertLoad::balanced, "balanced"},
    {ExpertLoad::typical, "typical"},
    {ExpertLoad::worst, "worst"},
}};

}  // namespace headroom
