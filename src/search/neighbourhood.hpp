// Strategies one change away from a candidate, for what climbs from plan to plan: it makes plans faster
// (search/widen.hpp), or simpler (search/choice.hpp).
#pragma once

#include <optional>
#include <utility>

#include "headroom/plan/changes.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

class Neighbourhood {
 public:
  // Keeps references to the request and the space.
  Neighbourhood(const Request& base, const Space& space) : base_(base), space_(space), composer_(base) {}

  Composer& composer() { return composer_; }

  // Calls visit(strategy) for every change of the candidate's strategy, whether it is legal or not.
  template <class Visit>
  void visit_changes(const Candidate& from, Visit visit) const {
    const Request now = with_strategy(from);
    for (const Edits& change : changes_on_same_devices(now)) {
      Strategy strategy = changed(now, change).strategy;
      if (strategy.tensor_parallel == 1) strategy.sequence_parallel = false;  // as a space has it
      visit(std::as_const(strategy));
    }
  }

  // Returns whether the strategy is another one, legal, launched as the candidate's is, and in the space.
  bool reaches(const Candidate& from, const Strategy& strategy) {
    return strategy != from.strategy && admits(base_, space_, strategy) && can_replace(from, strategy);
  }
  bool can_replace(const Candidate& from, const Strategy& strategy) {
    return headroom::can_replace(with_strategy(from), strategy, &composer_.known_layers());
  }

  // Returns the candidate with another strategy, if its verdict is at most `verdict` by its tensors and
  // keeps(candidate) is true: first with a lower bound of its time, then with its time.
  template <class Keeps>
  std::optional<Candidate> evaluated(Candidate candidate, const Strategy& strategy, Verdict verdict,
                                     Keeps keeps) {
    candidate.strategy = strategy;
    candidate.held.reset();
    const Layout layout = composer_.layout(strategy);
    candidate.iteration = layout.least_iteration(strategy);
    if (!keeps(std::as_const(candidate))) return std::nullopt;
    const RankPeak peak = layout.peak(strategy);
    candidate.peak = peak.bytes;
    candidate.peak_rank = peak.rank;
    candidate.verdict = verdict_of(base_, peak.bytes);
    if (candidate.verdict > verdict) return std::nullopt;
    candidate.iteration = layout.iteration(strategy);
    candidate.mfu = layout.mfu(candidate.iteration);
    return keeps(std::as_const(candidate)) ? std::optional(std::move(candidate)) : std::nullopt;
  }

 private:
  [[nodiscard]] Request with_strategy(const Candidate& candidate) const {
    Request request = base_;
    request.strategy = candidate.strategy;
    return request;
  }

  const Request& base_;
  const Space& space_;
  Composer composer_;
};

}  // namespace headroom
