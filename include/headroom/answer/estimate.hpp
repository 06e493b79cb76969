// Question of `headroom estimate`: one strategy in full, with everything that the answer shows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/peak_tensors.hpp"
#include "headroom/answer/routing.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/answer/views.hpp"
#include "headroom/interop/launch.hpp"
#include "headroom/plan/allocator_use.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/plan/interval.hpp"
#include "headroom/plan/remedies.hpp"

namespace headroom {

struct EstimateQuestion {
  Request request;
  Training training;                    // cost of a training run, if its tokens are known
  bool with_alternatives = true;        // look for changes that help
  bool with_schedule = false;           // simulate the schedule step by step, with the memory of its ranks
  bool with_peak_tensors = false;       // list what the fullest rank saves at its peak
  WhichViews views = WhichViews::none;  // add what a page shows beside the account
  bool with_launch = false;             // return a whole launch
  std::optional<LaunchTarget> target = std::nullopt;  // of the launch; absent: the stack's own launcher
};

struct EstimateReply {
  Evaluation evaluation;
  AllocatedInterval allocated;
  std::optional<IterationSpread> spread;  // if time is known
  std::optional<IterationInterval> interval;
  Training training;
  std::optional<TrainingInterval> cost;  // if time is known and tokens are given
  bool looked_for_alternatives = false;
  std::vector<Alternative> alternatives;  // remedies if the plan does not fit, else improvements
  // if the plan does not fit: weight-sharding stacks with plans that do
  std::vector<std::string> sharding_stacks;
  std::optional<std::vector<PeakTensor>> peak_tensors;  // if asked for
  std::optional<Trace> trace;                           // schedule and memory, if asked for and time is known
  std::optional<Views> views;                           // if asked for
  std::optional<Launch> launch;                         // if asked for and the stack has a launcher
  std::optional<Routing> routing;                       // if ranks share the model's experts
};

// Evaluates the strategy. Throws InputError, with every broken rule, if the strategy is not legal.
EstimateReply answer(const EstimateQuestion& question);

// Returns the names of stacks that shard weights over data-parallel ranks and on which some plan fits, for
// the request's model, system, batch and so many GPUs. Returns nothing if the request's own stack shards
// weights.
std::vector<std::string> sharding_stacks(const Request& request, std::int64_t devices);

// Returns the reply for an evaluated plan, without alternatives, loads and schedule. Settles the plan's
// verdict.
EstimateReply estimated(Evaluation evaluation, const Training& training);

bool fits(const EstimateReply& reply);

}  // namespace headroom
