// The choice of a plan among those that predictions cannot tell apart, what was measured of them taken into
// account, and the runs that would tell most.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "headroom/interop/launch.hpp"
#include "headroom/search/choice.hpp"
#include "headroom/search/drawbacks.hpp"
#include "headroom/search/search.hpp"
#include "headroom/search/time_belief.hpp"

namespace headroom {

// What a run of a strategy of the question came to.
struct TrialResult {
  std::string name;  // as messages call it: "trials.json: /0"
  Strategy strategy;
  std::optional<Seconds> iteration;  // absent: it ran out of memory
  friend bool operator==(const TrialResult&, const TrialResult&) = default;
};

struct ChoiceQuestion {
  RankedBy by = RankedBy::preference;
  std::size_t trials = 0;  // most strategies to propose for measurement
  std::vector<TrialResult> measured;
  friend bool operator==(const ChoiceQuestion&, const ChoiceQuestion&) = default;
};

// What is believed of one of the plans.
struct PlanBelief {
  double odds = 0;     // that it is the fastest of the plans compared
  bool equal = false;  // to the fastest of them, within noise
  std::vector<const Drawback*> drawbacks;
  // Set if runs were measured: iteration time expected after them, its interval, and whether this plan ran.
  std::optional<Seconds> expected;
  std::optional<IterationInterval> interval;
  bool ran = false;
  friend bool operator==(const PlanBelief&, const PlanBelief&) = default;
};

// A strategy whose run would tell which plan is the fastest, and what is lost once it ran (Trials).
struct ProposedTrial {
  Candidate candidate;
  double loss_after = 0;
  std::optional<Launch> launch = std::nullopt;  // if a whole launch was asked for and there is one
  friend bool operator==(const ProposedTrial&, const ProposedTrial&) = default;
};

// A faster strategy that the first plan was preferred to, and the drawbacks that the first plan does without.
struct Spared {
  Candidate candidate;
  double odds = 0;  // that it is the fastest
  std::vector<const Drawback*> drawbacks;
  friend bool operator==(const Spared&, const Spared&) = default;
};

struct PlanChoice {
  RankedBy by = RankedBy::preference;
  std::size_t measured = 0;       // runs whose times were taken into account
  std::vector<PlanBelief> plans;  // of the first plans, those with the verdict of the first
  std::optional<Spared> spared;   // the fastest, unless it is the first plan
  double loss = 0;                // without a trial; zero if none was asked for
  std::vector<ProposedTrial> trials;
  std::vector<Problem> remarks;  // on runs, by name: implausible times, strategies that are no plan here
  friend bool operator==(const PlanChoice&, const PlanChoice&) = default;
};

// Plans that are compared with each other, however many are shown.
inline constexpr std::size_t compared_plans = 10;

// Adds the strategies that ran out of memory to those that the space rules out.
Space ruling_out(Space space, const std::vector<TrialResult>& measured);

// Puts the chosen plan first: makes the first plans simpler (search/choice.hpp), takes in what was measured,
// and ranks. Compares the first `compared_plans` that have the verdict of the first; they must be confirmed.
// A measured strategy becomes a plan if the space admits it and it fits as well; if not, its time still
// updates the belief in the others. Trials may also come from `front`, confirmed points of the Pareto front.
// Expects at least one plan, of a search with one request and space, and a system with performance figures.
// Throws InputError, which names the run, if the strategy of a run is not legal.
PlanChoice choose(std::vector<Candidate>& plans, const std::vector<Candidate>& front, const Request& base,
                  const Space& space, const ChoiceQuestion& question);

}  // namespace headroom
