#include "headroom/model/expert_load.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "headroom/core/counts.hpp"
#include "headroom/core/expects.hpp"

namespace headroom {
namespace {

constexpr double router_deviation = 0.02;  // Megatron-LM, --init-method-std

// Normal numbers that are the same on every machine, by Marsaglia's polar method from SplitMix64 [Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", 2014].
class Normal {
 public:
  double operator()() {
    if (has_spare_) {
      has_spare_ = false;
      return spare_;
    }
    double x = 0;
    double y = 0;
    double square = 0;
    do {
      x = 2 * uniform() - 1;
      y = 2 * uniform() - 1;
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const double scale = std::sqrt(-2 * std::log(square) / square);
    spare_ = y * scale;
    has_spare_ = true;
    return x * scale;
  }

 private:
  double uniform() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = (state_ ^ (state_ >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    constexpr int spare_bits = 11;  // of 64, beyond a double's 53
    return static_cast<double>((mixed ^ (mixed >> 31U)) >> spare_bits) * 0x1p-53;
  }

  std::uint64_t state_ = 0;
  double spare_ = 0;
  bool has_spare_ = false;
};

template <class T>
double size_of(const std::vector<T>& values) {
  return static_cast<double>(values.size());
}

// Draws the loads of a layer's experts, over their mean.
void draw(Normal& normal, double spread, std::vector<double>& experts) {
  double all = 0;
  for (double& expert : experts) {
    expert = std::exp(spread * normal());
    all += expert;
  }
  for (double& expert : experts) expert *= size_of(experts) / all;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Returns the largest possible load of a rank. At most, it receives every token once for each expert that it
// holds, up to the experts of a token.
double most_load(const Experts& experts, std::int64_t ranks) {
  const double reached = real(std::max<std::int64_t>(std::min(experts.per_token, experts.count / ranks), 1));
  return std::max(reached * real(ranks) / real(experts.per_token), 1.0);
}

// Returns the standard deviation of a rank's share of a microbatch's tokens, over its mean.
double sampling_deviation(const RoutedExperts& routed) {
  const double expected = routed.tokens * real(routed.experts.per_token) / real(routed.ranks);
  return expected > 0 ? 1 / std::sqrt(expected) : 0;
}

}  // namespace

double routing_spread(MoeBalancing balancing, std::int64_t hidden) {
  switch (balancing) {
    case MoeBalancing::aux_loss: return aux_loss_spread;
    case MoeBalancing::loss_free: return loss_free_spread;
    case MoeBalancing::none: return router_deviation * std::sqrt(real(hidden));
  }
  EXPECTS(!"unknown balancing");
  return 0;
}

double fullest_rank(ExpertLoad load, double spread, std::int64_t experts, std::int64_t ranks) {
  EXPECTS(ranks >= 1 && experts >= ranks && experts % ranks == 0);
  if (load == ExpertLoad::balanced || ranks == 1) return 1;
  constexpr std::size_t draws = 31;
  const std::int64_t on_rank = experts / ranks;
  Normal normal;
  std::vector<double> loads(index(experts));
  std::vector<double> fullest;
  for (std::size_t i = 0; i < draws; ++i) {
    draw(normal, spread, loads);
    if (load == ExpertLoad::worst)
      std::partial_sort(loads.begin(), loads.begin() + on_rank, loads.end(), std::greater<>());
    double most = 0;
    for (auto first = loads.begin(); first != loads.end(); first += on_rank)
      most = std::max(most, std::accumulate(first, first + on_rank, 0.0));
    fullest.push_back(most / static_cast<double>(on_rank));
  }
  return std::max(median(std::move(fullest)), 1.0);
}

double fullest_rank(const MoeImbalance& imbalance, const Transformer& model, std::int64_t ranks) {
  double most = 0;
  const auto consider = [&](const Architecture& architecture) {
    if (!architecture.experts) return;
    const Experts& experts = *architecture.experts;
    const bool divided = experts.count >= ranks && experts.count % ranks == 0;
    const bool known = imbalance.load != ExpertLoad::balanced && divided;
    const double spread = routing_spread(imbalance.balancing, model.hidden);
    const double asked =
        known ? fullest_rank(imbalance.load, spread, experts.count, ranks) : imbalance.factor;
    const double load = std::min(asked, most_load(experts, ranks));
    most = std::max(most, std::min(load, experts.capacity_factor.value_or(load)));
  };
  if (model.layer_kinds.empty()) consider(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) consider(kind.architecture);
  return most > 0 ? most : imbalance.factor;
}

bool has_capacities(const Transformer& model) {
  const auto lacks = [](const Architecture& layer) {
    return layer.experts && !layer.experts->capacity_factor;
  };
  return any_experts(model) && !any_layer(model, lacks);
}

double capacity_factor(const Transformer& model) {
  double most = 0;
  const auto consider = [&](const Architecture& architecture) {
    if (architecture.experts) most = std::max(most, architecture.experts->capacity_factor.value_or(0));
  };
  if (model.layer_kinds.empty()) consider(model.architecture);
  for (const LayerDescription& kind : model.layer_kinds) consider(kind.architecture);
  return most > 0 ? most : 1;
}

std::vector<DrawnLoads> drawn_loads(const RoutedExperts& routed, std::size_t draws) {
  EXPECTS(routed.ranks >= 1 && routed.experts.count % routed.ranks == 0 && routed.layers >= 1);
  const std::int64_t on_rank = routed.experts.count / routed.ranks;
  const double most = most_load(routed.experts, routed.ranks);
  const double sampling = sampling_deviation(routed);
  const double of_sums = sampling / std::sqrt(real(routed.layers) * std::max(routed.in_flight, 1.0));
  Normal normal;
  std::vector<double> experts(index(routed.experts.count));
  std::vector<double> sums(index(routed.ranks));
  std::vector<DrawnLoads> result;
  for (std::size_t i = 0; i < draws; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    double busiest = 0;
    for (std::int64_t layer = 0; layer < routed.layers; ++layer) {
      draw(normal, routed.spread, experts);
      auto expert = experts.begin();
      double most_of_layer = 0;
      for (double& sum : sums) {
        double load = 0;
        for (std::int64_t n = 0; n < on_rank; ++n, ++expert)
          load += std::min(*expert, routed.experts.capacity_factor.value_or(*expert)) / real(on_rank);
        load = std::min(load, most);
        sum += load;
        most_of_layer = std::max(most_of_layer, load * (1 + sampling * normal()));
      }
      busiest += most_of_layer;
    }
    double fullest = 0;
    for (const double sum : sums)
      fullest = std::max(fullest, sum / real(routed.layers) * (1 + of_sums * normal()));
    result.push_back({.memory = std::clamp(fullest, 1.0, most),
                      .time = std::clamp(busiest / real(routed.layers), 1.0, most)});
  }
  return result;
}

double load_quantile(const std::vector<DrawnLoads>& draws, double DrawnLoads::*load, double quantile) {
  EXPECTS(!draws.empty() && quantile >= 0 && quantile <= 1);
  std::vector<double> loads;
  loads.reserve(draws.size());
  for (const DrawnLoads& drawn : draws) loads.push_back(drawn.*load);
  const auto place = static_cast<std::ptrdiff_t>(quantile * (size_of(loads) - 1));
  std::nth_element(loads.begin(), loads.begin() + place, loads.end());
  return loads[static_cast<std::size_t>(place)];
}

double chance_above(const std::vector<DrawnLoads>& draws, double DrawnLoads::*load, double limit,
                    double times) {
  EXPECTS(!draws.empty());
  double mean = 0;
  for (const DrawnLoads& drawn : draws) mean += drawn.*load / size_of(draws);
  double variance = 0;
  for (const DrawnLoads& drawn : draws)
    variance += (drawn.*load - mean) * (drawn.*load - mean) / size_of(draws);
  if (variance <= 0) return mean > limit ? 1 : 0;
  const double scale = std::sqrt(6 * variance) / std::numbers::pi;
  const double mode = mean - std::numbers::egamma * scale;
  // 1 - exp(-times exp(-(limit - mode) / scale)), which is precise for small chances.
  return -std::expm1(-times * std::exp(-(limit - mode) / scale));
}

}  // namespace headroom
