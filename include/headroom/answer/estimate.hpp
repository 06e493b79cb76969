// One strategy in full: the question of `headroom estimate`, and everything that its answer shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/trace.hpp"
#include "headroom/interop/launch_flags.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/plan/remedies.hpp"

namespace headroom {

struct EstimateQuestion {
  Request request;
  Training training;              // what a training run takes, where its tokens are known
  bool with_alternatives = true;  // look for changes that would help
  bool with_schedule = false;     // replay the schedule step by step, with the memory of its ranks
  bool with_launch = false;       // the flags of the stack's launcher
};

// What the plan takes where its experts are wanted so.
struct LoadedPlan {
  ExpertLoad load = ExpertLoad::balanced;
  double imbalance = 1;  // of the fullest rank, times the mean
  Bytes peak;
  Verdict verdict = Verdict::fits;
  std::optional<Seconds> iteration;  // where time is known
};

struct EstimateReply {
  Evaluation evaluation;
  AllocatedInterval allocated;
  std::optional<IterationSpread> spread;  // where time is known
  std::optional<IterationInterval> interval;
  Training training;
  std::optional<TrainingInterval> cost;  // where time is known and tokens are given
  bool looked_for_alternatives = false;
  std::vector<Alternative> alternatives;     // remedies where it does not fit, else improvements
  std::vector<std::string> sharding_stacks;  // where it does not fit: on which plans that shard weights do
  std::optional<Trace> trace;  // of the schedule and of memory, where it was asked for and time is known
  std::optional<LaunchFlags> launch;  // where it was asked for and the stack has a launcher
  std::vector<LoadedPlan> loads;      // of a model with experts that ranks share: each of ExpertLoad
};

// Throws InputError, with every rule that is broken, where the strategy is not legal.
EstimateReply answer(const EstimateQuestion& question);

// The request at each load of its experts; none where no ranks share experts.
std::vector<LoadedPlan> plans_by_load(const Request& request);

// Stacks that shard weights over data-parallel ranks and on which some plan fits, of the model, system, devices and batch of a request,
// by name. Empty where its own stack shards weights.
std::vector<std::string> sharding_stacks(const Request& request, std::int64_t devices);

// The reply without alternatives, loads and schedule, of a plan that is there already. Settles it.
EstimateReply estimated(Evaluation evaluation, const Training& training);

bool fits(const EstimateReply& reply);

}  // namespace headroom
