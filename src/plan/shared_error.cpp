#include "headroom/plan/shared_error.hpp"

#include <cmath>

namespace headroom {

std::vector<std::string_view> traits_apart(const Strategy& x, const Strategy& y) {
  std::vector<std::string_view> apart;
  for (const StrategyTrait& trait : strategy_traits) {
    if (!trait.alike(x, y)) apart.push_back(trait.name);
  }
  return apart;
}

double deviation_between(const Strategy& x, const Strategy& y, const SharedErrors& errors) {
  if (x == y) return 0;
  double variance = 2 * errors.own * errors.own;
  for (const StrategyTrait& trait : strategy_traits) {
    const double deviation = errors.*trait.deviation;
    if (!trait.alike(x, y)) variance += 2 * deviation * deviation;
  }
  return std::sqrt(variance);
}

}  // namespace headroom
