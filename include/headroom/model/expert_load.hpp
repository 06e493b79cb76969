// Imbalance of routing: the loads of expert-parallel ranks over the mean.
//
// In each layer, the popularity of experts is the softmax of logits that drift from step to step: normal with
// a standard deviation of `spread`, independent between layers. The tokens of a microbatch choose
// independently by popularity. Experts lie on ranks in blocks of equal size.
//
//   memory  A rank keeps activations of all its layers, whose loads average out: the load of the fullest
//           rank, averaged over its layers.
//   time    All ranks wait for the busiest rank of each layer: its load, averaged over layers.
//
// Spreads, all assumed:
//   aux_loss   0.241. The most popular of 64 experts receives 1.72 times the mean [Wang et al.,
//              arXiv:2408.15664, table 2: MaxVio 0.72 of a mixture trained with an auxiliary loss].
//   loss_free  0.0168. Likewise 1.04 times [the same table: MaxVio 0.04 of a bias that balances loads].
//   none       0.02 sqrt(h). At initialization, the weights of a router have a standard deviation of 0.02 and
//              read normalized tokens. This is the spread if all tokens are alike, the most that it can be.
//              It stands for a router without balance and for the first steps of any.
//
// Logits of steps that are `drift_steps` apart are taken to be independent, of nearer ones to be the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headroom/model/moe_imbalance.hpp"
#include "headroom/model/transformer.hpp"

namespace headroom {

inline constexpr double aux_loss_spread = 0.241;
inline constexpr double loss_free_spread = 0.0168;
inline constexpr std::int64_t drift_steps = 100;  // assumed

// Returns the standard deviation of the logits of a layer's experts. `hidden` is the model's hidden size.
double routing_spread(MoeBalancing balancing, std::int64_t hidden);

// Returns the load of the busiest of `ranks` ranks, over the mean. Expects `ranks` to divide `experts`. At
// least 1; 1 on one rank.
double fullest_rank(ExpertLoad load, double spread, std::int64_t experts, std::int64_t ranks);

// Returns the load of the busiest rank for the model's experts, limited by their capacity. If several kinds
// of layers have experts, returns the largest load. Without experts, returns the stated
// factor (default 1).
double fullest_rank(const MoeImbalance& imbalance, const Transformer& model, std::int64_t ranks);

// Returns whether the model has experts, and all of them a capacity factor.
bool has_capacities(const Transformer& model);

// Returns the largest capacity factor of the model's layers, or 1 if no layer has one.
double capacity_factor(const Transformer& model);

// What draws of loads need of the layers of a pipeline rank.
struct RoutedExperts {
  Experts experts;
  std::int64_t ranks = 1;   // expert-parallel ranks; divides experts.count
  std::int64_t layers = 1;  // layers with experts on a pipeline rank
  double in_flight = 1;     // microbatches whose activations a rank holds
  double tokens = 0;        // of a microbatch on all expert-parallel ranks
  double spread = 0;        // routing_spread
};

// Loads of one draw, over the mean; at least 1.
struct DrawnLoads {
  double memory = 1;
  double time = 1;
  friend bool operator==(const DrawnLoads&, const DrawnLoads&) = default;
};

// Returns `draws` draws, the same on every machine. A capacity factor limits the load of each expert. A rank
// receives each token at most once for each of its experts.
std::vector<DrawnLoads> drawn_loads(const RoutedExperts& routed, std::size_t draws);

// Returns a quantile (0 to 1) of one of the two loads. Expects at least one draw.
double load_quantile(const std::vector<DrawnLoads>& draws, double DrawnLoads::*load, double quantile);

// Returns the chance that a load exceeds `limit` at least once in `times` independent draws. Tails follow a
// Gumbel distribution with the mean and the variance of the draws, since a load is the largest of many.
double chance_above(const std::vector<DrawnLoads>& draws, double DrawnLoads::*load, double limit,
                    double times);

}  // namespace headroom
