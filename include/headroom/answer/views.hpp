// What a page shows of a plan beyond its account: the schedule, the layer's budget by tensor, and memory against
// recomputation: the ladder of the usual policies, and the frontier of all sets of ops.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/answer/explain.hpp"
#include "headroom/answer/trace.hpp"
#include "headroom/search/frontier.hpp"

namespace headroom {

// A plan with another sequence parallelism and recomputation [K22, figure 7].
struct Rung {
  bool sequence_parallel = false;
  RecomputePolicy recompute = RecomputePolicy::none;
  Bytes activations;  // of the rank with the peak
  Bytes peak;
  Verdict verdict = Verdict::fits;
  std::optional<Seconds> iteration;  // if time is known
  friend bool operator==(const Rung&, const Rung&) = default;
};

// quick: the schedule and the layer, which cost next to nothing beside an estimate.
enum class WhichViews : std::uint8_t { none, quick, all };

struct Views {
  std::optional<Trace> schedule;      // absent: time is not known, or it has over most_drawn_steps steps
  std::optional<ExplainReply> layer;  // absent: the recomputation window of the plan needs a GPU's memory
  std::vector<Rung> ladder;
  std::vector<FrontierPoint> frontier;
};

// Returns the rungs of a plan: no, selective and full recomputation with and without sequence parallelism,
// those that its stack can run, without sequence parallelism and recomputation first.
std::vector<Rung> ladder_of(const Plan& plan);

// Returns the uniform front of a plan's layout (search/frontier.hpp), or nothing where it has none: time is not
// known, or the plan offloads activations or overlaps the exchanges of experts.
std::vector<FrontierPoint> frontier_of(const Plan& plan);

// Expects that some are asked for.
Views views_of(const Plan& plan, WhichViews which);

}  // namespace headroom
