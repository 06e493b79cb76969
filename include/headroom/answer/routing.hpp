// The plan under the distribution of routing: what uneven loads of experts take (model/expert_load.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/model/expert_load.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// Memory and time of the plan at a quantile of the loads of its expert ranks.
struct LoadedPlan {
  double quantile = 0;     // 0: balanced
  double memory_load = 1;  // of the fullest rank over its layers, over the mean
  double time_load = 1;    // of the busiest rank of a layer, averaged over layers
  Bytes peak;
  Verdict verdict = Verdict::fits;
  std::optional<Seconds> iteration;  // if time is known
};

// The plan at several quantiles, and its chances to run out of memory.
struct Routing {
  MoeBalancing balancing = MoeBalancing::aux_loss;
  std::int64_t layers = 0;         // layers with experts whose loads were drawn
  std::int64_t steps = 0;          // of the chance
  std::vector<LoadedPlan> loads;   // balanced, median, 90% quantile
  double out_of_memory = 0;        // chance within `steps` steps, if routing is balanced as stated
  double out_of_memory_early = 0;  // chance in the first steps, without balance
};

// Returns the plan under the distribution of routing, or nothing if no ranks share experts or all experts are
// padded to their capacity. Chances are for the steps of a training, or 1,000 steps if its tokens are not
// given.
std::optional<Routing> routing_of(const Plan& plan, const Training& training);

}  // namespace headroom
