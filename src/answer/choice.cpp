#include "headroom/answer/choice.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "search/division.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Evaluates the strategy of a run.
Candidate evaluated(const Request& base, const TrialResult& run) {
  Request request = base;
  request.strategy = run.strategy;
  try {
    const Evaluation evaluation = evaluate(request);
    const Plan& plan = account(evaluation);
    return settled_candidate(base, {.strategy = run.strategy,
                                    .iteration = plan.timing->iteration.total,
                                    .mfu = plan.timing->throughput.mfu});
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = run.name + " " + problem.where;
    throw InputError(std::move(problems));
  }
}

std::ptrdiff_t place_of(const std::vector<Candidate>& list, const Strategy& strategy) {
  return std::find_if(list.begin(), list.end(),
                      [&](const Candidate& it) { return it.strategy == strategy; }) -
         list.begin();
}

bool holds(const std::vector<Candidate>& list, const Strategy& strategy) {
  return place_of(list, strategy) < std::ssize(list);
}

// Adds a remark on a time that is far from its prediction: milliseconds may have been meant.
void check_time(const TrialResult& run, Seconds predicted, std::vector<Problem>& remarks) {
  constexpr double implausible = 3;
  const double ratio = *run.iteration / predicted;
  if (ratio <= implausible && ratio >= 1 / implausible) return;
  remarks.push_back(
      {run.name, fmt::format("has a time of {:.4g} s, where {:.4g} s is predicted: is it one of an "
                             "iteration, in seconds?",
                             run.iteration->count(), predicted.count())});
}

// What is compared: the plans first, then strategies that are no plans here.
struct Contenders {
  std::vector<Candidate> all;
  std::size_t plans = 0;
  std::vector<Measurement> measurements;
};

// Adds the strategies that ran: as plans, or only as evidence.
void take_in(Contenders& contenders, const Request& base, const Space& space,
             const std::vector<TrialResult>& measured, std::vector<Problem>& remarks) {
  const Verdict verdict = contenders.all.front().verdict;
  std::vector<Candidate> evidence;
  std::vector<std::pair<Strategy, Seconds>> times;
  for (const TrialResult& run : measured) {
    if (!run.iteration) continue;
    times.emplace_back(run.strategy, *run.iteration);
    const std::ptrdiff_t place = place_of(contenders.all, run.strategy);
    if (place < std::ssize(contenders.all)) {
      check_time(run, contenders.all[static_cast<std::size_t>(place)].iteration, remarks);
      continue;
    }
    Candidate candidate = evaluated(base, run);
    check_time(run, candidate.iteration, remarks);
    if (holds(evidence, run.strategy)) continue;
    if (candidate.verdict <= verdict && admits(base, space, run.strategy)) {
      contenders.all.push_back(std::move(candidate));
      continue;
    }
    remarks.push_back(
        {run.name, candidate.verdict > verdict
                       ? fmt::format("is no plan here, since its verdict is {}; its time tells of others",
                                     name_of(candidate.verdict))
                       : "is no plan here, since the search leaves it out; its time tells of others"});
    evidence.push_back(std::move(candidate));
  }
  contenders.plans = contenders.all.size();
  contenders.all.insert(contenders.all.end(), evidence.begin(), evidence.end());
  for (const auto& [strategy, time] : times)
    contenders.measurements.push_back(
        {.of = static_cast<std::size_t>(place_of(contenders.all, strategy)), .time = time});
}

TimeBelief belief_in(const Contenders& contenders, const Request& base) {
  const Spreads& spreads = embedded_spreads();
  return given(believed(contenders.all, iteration_spread(base, spreads).spread, spreads.shared),
               contenders.measurements);
}

// Puts simpler strategies in the place of the first plans that are equal to the fastest within noise. Ranked
// by time, a plan gives way only to one that takes less: few plans are searched with every choice.
void simplify(std::vector<Candidate>& plans, const Request& base, const Space& space, RankedBy by) {
  constexpr std::size_t most_simplified = 4;
  const SharedErrors& errors = embedded_spreads().shared;
  const Candidate fastest = plans.front();
  for (std::size_t i = 0; i < std::min(plans.size(), most_simplified); ++i) {
    if (!equal_within_noise(plans[i], fastest, errors)) continue;
    Candidate simpler = simplified(base, space, plans[i], errors);
    if (by == RankedBy::time && simpler.iteration >= plans[i].iteration) continue;
    // A change may have led to the division of another plan.
    const bool is_others = std::any_of(plans.begin(), plans.end(), [&](const Candidate& other) {
      return &other != &plans[i] && division_of(other.strategy) == division_of(simpler.strategy);
    });
    if (!is_others) plans[i] = std::move(simpler);
  }
}

// Names the runs that would tell most of plans and of points of the Pareto front.
void propose(PlanChoice& choice, Contenders contenders, const std::vector<Candidate>& front,
             const Request& base, std::size_t most) {
  const Verdict verdict = contenders.all.front().verdict;
  for (std::size_t i = 0; i < std::min(front.size(), compared_plans); ++i) {
    if (front[i].verdict <= verdict && !holds(contenders.all, front[i].strategy))
      contenders.all.push_back(front[i]);
  }
  const Trials trials = most_telling(belief_in(contenders, base), most);
  choice.loss = trials.loss_before;
  for (std::size_t i = 0; i < trials.of.size(); ++i)
    choice.trials.push_back({.candidate = contenders.all[trials.of[i]], .loss_after = trials.loss_after[i]});
}

}  // namespace

Space ruling_out(Space space, const std::vector<TrialResult>& measured) {
  for (const TrialResult& run : measured) {
    if (!run.iteration) space.ran_out.push_back(run.strategy);
  }
  return space;
}

PlanChoice choose(std::vector<Candidate>& plans, const std::vector<Candidate>& front, const Request& base,
                  const Space& space, const ChoiceQuestion& question) {
  EXPECTS(!plans.empty());
  const Candidate fastest = plans.front();
  const auto most = plans.begin() + std::min(std::ssize(plans), std::ptrdiff_t{compared_plans});
  const auto end =
      std::find_if(plans.begin(), most, [&](const Candidate& it) { return it.verdict != fastest.verdict; });
  Contenders contenders{.all = {plans.begin(), end}, .measurements = {}};
  plans.erase(plans.begin(), end);
  PlanChoice choice{.by = question.by};
  simplify(contenders.all, base, space, question.by);
  // The fastest is ranked beside its simpler form, and is no plan of its own unless it comes first.
  const bool was_simplified = !holds(contenders.all, fastest.strategy);
  if (was_simplified) contenders.all.push_back(fastest);
  take_in(contenders, base, space, question.measured, choice.remarks);
  choice.measured = contenders.measurements.size();

  const TimeBelief belief = belief_in(contenders, base);
  const std::span<const Candidate> ranked_ones(contenders.all.data(), contenders.plans);
  const Ranking ranking = ranked(base, ranked_ones, belief, question.by);
  const std::vector<double> odds = odds_of_fastest(belief, contenders.plans);
  std::vector<Candidate> sorted;
  for (const std::size_t i : ranking.order) {
    const Candidate& candidate = contenders.all[i];
    const bool ran = std::any_of(contenders.measurements.begin(), contenders.measurements.end(),
                                 [&](const Measurement& run) { return run.of == i; });
    const bool is_unshown = was_simplified && !ran && i != ranking.order.front();
    if (is_unshown && candidate.strategy == fastest.strategy) continue;
    PlanBelief one{
        .odds = odds[i], .equal = ranking.equal[i], .drawbacks = drawbacks_of(base, candidate), .ran = ran};
    if (choice.measured > 0) {
      one.expected = expected(belief, i);
      one.interval = interval(belief, i);
    }
    sorted.push_back(candidate);
    choice.plans.push_back(std::move(one));
  }
  plans.insert(plans.begin(), sorted.begin(), sorted.end());
  const Candidate& first_expected = contenders.all[ranking.fastest];
  if (first_expected.strategy != plans.front().strategy) {
    choice.spared = Spared{.candidate = first_expected,
                           .odds = odds[ranking.fastest],
                           .drawbacks = drawbacks_of(base, first_expected)};
    std::erase_if(choice.spared->drawbacks,
                  [&](const Drawback* it) { return contains(choice.plans.front().drawbacks, it); });
  }
  if (question.trials > 0) propose(choice, std::move(contenders), front, base, question.trials);
  return choice;
}

}  // namespace headroom
