#include "headroom/search/choice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "headroom/core/expects.hpp"
#include "headroom/plan/changes.hpp"
#include "headroom/plan/composer.hpp"
#include "headroom/search/drawbacks.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Returns seconds with the price of the candidate's drawbacks.
double priced(const Request& base, const Candidate& candidate, Seconds time) {
  return (1 + price_of(drawbacks_of(base, candidate))) * time.count();
}

// Smallest part of an iteration by which a change must lower the priced time.
constexpr double least_saving = 0.001;

// Evaluates simpler neighbours of a candidate.
class Simplification {
 public:
  Simplification(const Request& base, const Space& space, const Candidate& from, const SharedErrors& errors)
      : base_(base), space_(space), from_(from), errors_(errors), composer_(base) {}

  // Returns the neighbours of `now` whose priced time is less, the least first.
  std::vector<Candidate> better(const Candidate& now) {
    Request request = base_;
    request.strategy = now.strategy;
    const double most = (1 - least_saving) * priced(base_, now, now.iteration);
    std::vector<std::pair<double, Candidate>> found;
    const auto consider = [&](const Strategy& strategy) {
      if (strategy == now.strategy || !admits(base_, space_, strategy) ||
          !can_replace(request, strategy, &composer_.known_layers()))
        return;
      Candidate next = now;
      next.strategy = strategy;
      next.held.reset();
      composer_.set_layout(strategy);
      if (priced(base_, next, composer_.least_iteration(strategy)) >= most) return;
      const RankPeak peak = composer_.peak(strategy);
      next.peak = peak.bytes;
      next.peak_rank = peak.rank;
      next.verdict = verdict_of(base_, peak.bytes);
      if (next.verdict > from_.verdict) return;
      next.iteration = composer_.iteration(strategy);
      next.mfu = composer_.mfu(next.iteration);
      const double price = priced(base_, next, next.iteration);
      if (price < most && is_equal(next)) found.emplace_back(price, std::move(next));
    };
    const auto consider_even_too = [&](Strategy strategy) {
      if (strategy.tensor_parallel == 1) strategy.sequence_parallel = false;  // as a space has it
      consider(strategy);
      if (strategy.stage_layers.empty()) return;
      strategy.stage_layers.clear();  // those of another number of stages do not fit
      consider(strategy);
    };
    consider_even_too(now.strategy);
    for (const Edits& change : changes_on_same_devices(request))
      consider_even_too(changed(request, change).strategy);
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    std::vector<Candidate> sorted;
    sorted.reserve(found.size());
    for (auto& [price, candidate] : found) sorted.push_back(std::move(candidate));
    return sorted;
  }

 private:
  [[nodiscard]] bool is_equal(const Candidate& next) const {
    const double deviation = deviation_between(from_.strategy, next.strategy, errors_);
    return std::log(next.iteration / from_.iteration) <= normal_quantile(interval_level) * deviation;
  }

  const Request& base_;
  const Space& space_;
  const Candidate& from_;
  const SharedErrors& errors_;
  Composer composer_;
};

}  // namespace

Chosen choice_among(const Request& base, std::span<const Candidate> candidates, const TimeBelief& belief) {
  EXPECTS(!candidates.empty() && belief.log_seconds.size() >= candidates.size());
  Chosen choice;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (belief.log_seconds[i] < belief.log_seconds[choice.fastest]) choice.fastest = i;
  }
  choice.first = choice.fastest;
  double least = priced(base, candidates[choice.fastest], expected(belief, choice.fastest));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    choice.equal.push_back(equal_within_noise(belief, i, choice.fastest));
    if (!choice.equal.back()) continue;
    const double time = priced(base, candidates[i], expected(belief, i));
    if (time >= least) continue;
    least = time;
    choice.first = i;
  }
  return choice;
}

Candidate simplified(const Request& base, const Space& space, const Candidate& candidate,
                     const SharedErrors& errors) {
  if (space.breadth == Breadth::usual) return candidate;
  Simplification simplification(base, space, candidate, errors);
  // Following the allocator takes milliseconds.
  constexpr std::size_t most_settled = 4;
  constexpr int most_steps = 16;
  Candidate now = candidate;
  for (int i = 0; i < most_steps; ++i) {
    std::vector<Candidate> next = simplification.better(now);
    if (next.size() > most_settled) next.resize(most_settled);
    const auto fits = std::find_if(next.begin(), next.end(), [&](Candidate& one) {
      one = settled_candidate(base, one);
      return one.verdict <= candidate.verdict;
    });
    if (fits == next.end()) break;
    now = std::move(*fits);
  }
  return now;
}

}  // namespace headroom
