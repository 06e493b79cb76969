// Load of the busiest expert-parallel rank, as a question states it. expert_load.hpp turns names into
// factors.
#pragma once

#include <array>
#include <cstdint>

#include "headroom/core/names.hpp"

namespace headroom {

// Placement of the experts on ranks. typical: the median load of the busiest rank of a layer. worst: the
// median load of a rank that holds the most popular experts together.
enum class ExpertLoad : std::uint8_t { balanced, typical, worst };

// What balances the load of experts: an auxiliary loss, a bias of the router [arXiv:2408.15664], or nothing.
enum class MoeBalancing : std::uint8_t { aux_loss, loss_free, none };

// Load of the busiest rank in every layer: a stated factor, or a named load.
struct MoeImbalance {
  double factor = 1;  // load factor if `balanced` (default 1)
  ExpertLoad load = ExpertLoad::balanced;
  MoeBalancing balancing = MoeBalancing::aux_loss;  // of named loads, and of drawn ones
  friend bool operator==(const MoeImbalance&, const MoeImbalance&) = default;
};

constexpr bool is_even(const MoeImbalance& imbalance) {
  return imbalance.factor == 1 && imbalance.load == ExpertLoad::balanced;
}

template <>
inline constexpr std::array<Spelling<ExpertLoad>, 3> spellings<ExpertLoad>{{
    {ExpertLoad::balanced, "balanced"},
    {ExpertLoad::typical, "typical"},
    {ExpertLoad::worst, "worst"},
}};
template <>
inline constexpr std::array<Spelling<MoeBalancing>, 3> spellings<MoeBalancing>{{
    {MoeBalancing::aux_loss, "aux_loss"},
    {MoeBalancing::loss_free, "loss_free"},
    {MoeBalancing::none, "none"},
}};
// Other losses of Megatron-LM's --moe-router-load-balancing-type.
template <>
inline constexpr std::array<Spelling<MoeBalancing>, 3> other_spellings<MoeBalancing>{{
    {MoeBalancing::aux_loss, "seq_aux_loss"},
    {MoeBalancing::aux_loss, "global_aux_loss"},
    {MoeBalancing::aux_loss, "sinkhorn"},
}};

}  // namespace headroom
