#include "headroom/plan/goodput.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {
namespace {

// Returns the optimal work between checkpoints by Daly's eq. 37.
Seconds optimal_interval(Seconds checkpoint, Seconds mtbf) {
  if (checkpoint >= 2 * mtbf) return mtbf;
  const double ratio = checkpoint / (2 * mtbf);
  return std::sqrt(2 * checkpoint.count() * mtbf.count()) * (1 + std::sqrt(ratio) / 3 + ratio / 9) *
             Seconds(1) -
         checkpoint;
}

// Returns the odds that a Poisson distributed number is at most `most`.
double poisson_at_most(double mean, std::int64_t most) {
  // Sums in logarithms, since exp(-mean) may underflow a double.
  double odds = 0;
  for (std::int64_t i = 0; i <= most; ++i) {
    const double n = static_cast<double>(i);
    odds += std::exp(n * std::log(mean) - mean - std::lgamma(n + 1));
  }
  return std::min(odds, 1.0);
}

}  // namespace

Goodput goodput(const Reliability& reliability, std::int64_t devices) {
  const Seconds mtbf = reliability.device_mtbf / static_cast<double>(devices);
  Goodput result{.mtbf = mtbf};
  result.checkpoint_interval =
      reliability.checkpoint_interval.value_or(optimal_interval(reliability.checkpoint_time, mtbf));
  const double work = result.checkpoint_interval / mtbf;
  const double checkpoint = reliability.checkpoint_time / mtbf;
  const double restart = reliability.restart_time / mtbf;
  result.productive = work / (std::exp(restart) * std::expm1(work + checkpoint));
  if (reliability.repair_time) {
    result.running =
        poisson_at_most(*reliability.repair_time / mtbf, reliability.spares / reliability.devices_per_node);
    result.productive *= result.running;
  }
  return result;
}

}  // namespace headroom
