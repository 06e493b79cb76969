#include "headroom/answer/choice.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/search/choice.hpp"
#include "search/division.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

constexpr std::size_t most_simplified = 4;

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
  std::vector<Strategy> strategies;
  std::vector<Seconds> predicted;
  for (const Candidate& it : contenders.all) {
    strategies.push_back(it.strategy);
    predicted.push_back(it.iteration);
  }
  const Spreads& spreads = embedded_spreads();
  return given(believed(strategies, predicted, iteration_spread(base, spreads).spread, spreads.shared),
               contenders.measurements);
}

// Puts simpler strategies in the place of the first plans that are equal to the fastest within noise.
void simplify(std::vector<Candidate>& plans, const Request& base, const Space& space) {
  const SharedErrors& errors = embedded_spreads().shared;
  const Candidate fastest = plans.front();
  for (std::size_t i = 0; i < std::min(plans.size(), most_simplified); ++i) {
    const double longer = plans[i].iteration / fastest.iteration;
    const double deviation = deviation_between(plans[i].strategy, fastest.strategy, errors);
    if (std::log(longer) > normal_quantile(interval_level) * deviation) continue;
    Candidate simpler = simplified(base, space, plans[i], errors);
    if (simpler.strategy == plans[i].strategy) continue;
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

Space without_those(Space space, const std::vector<TrialResult>& measured) {
  for (const TrialResult& run : measured) {
    if (!run.iteration) space.ran_out.push_back(run.strategy);
  }
  return space;
}

PlanChoice choose(std::vector<Candidate>& plans, const std::vector<Candidate>& front, const Request& base,
                  const Space& space, const ChoiceQuestion& question) {
  EXPECTS(!plans.empty());
  const auto end =
      std::find_if(plans.begin(), plans.begin() + std::min(std::ssize(plans), std::ptrdiff_t{compared_plans}),
                   [&](const Candidate& it) { return it.verdict != plans.front().verdict; });
  Contenders contenders;
  contenders.all.assign(plans.begin(), end);
  const auto taken = static_cast<std::ptrdiff_t>(contenders.all.size());
  const Candidate fastest = plans.front();
  PlanChoice choice{.exact = question.exact};
  if (!question.exact) simplify(contenders.all, base, space);
  take_in(contenders, base, space, question.measured, choice.remarks);
  choice.measured = contenders.measurements.size();
  const std::size_t listed = contenders.plans;
  if (!holds(contenders.all, fastest.strategy)) {
    contenders.all.insert(contenders.all.begin() + static_cast<std::ptrdiff_t>(listed), fastest);
    ++contenders.plans;
    for (Measurement& run : contenders.measurements) run.of += run.of >= listed ? 1 : 0;
  }
  const TimeBelief belief = belief_in(contenders, base);
  const std::span<const Candidate> candidates(contenders.all.data(), contenders.plans);
  const Chosen chosen = choice_among(base, candidates, belief);
  const std::vector<double> odds = odds_of_fastest(belief, contenders.plans);

  std::vector<double> priced;
  for (std::size_t i = 0; i < contenders.plans; ++i) {
    const double price =
        question.exact || !chosen.equal[i] ? 0 : price_of(drawbacks_of(base, contenders.all[i]));
    priced.push_back((1 + price) * expected(belief, i).count());
  }
  std::vector<std::size_t> order(listed);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    const bool x_is_equal = chosen.equal[x];
    if (!question.exact && x_is_equal != chosen.equal[y]) return x_is_equal;
    return priced[x] < priced[y];
  });
  std::vector<Candidate> sorted;
  for (const std::size_t i : order) {
    PlanBelief one{
        .odds = odds[i], .equal = chosen.equal[i], .drawbacks = drawbacks_of(base, contenders.all[i])};
    if (!contenders.measurements.empty()) {
      one.expected = expected(belief, i);
      one.interval = interval(belief, i);
      const bool ran = std::any_of(contenders.measurements.begin(), contenders.measurements.end(),
                                   [&](const Measurement& run) { return run.of == i; });
      if (ran) one.measured = one.expected;
    }
    sorted.push_back(contenders.all[i]);
    choice.plans.push_back(std::move(one));
  }
  plans.erase(plans.begin(), plans.begin() + taken);
  plans.insert(plans.begin(), sorted.begin(), sorted.end());
  if (chosen.fastest != order.front()) {
    choice.fastest = contenders.all[chosen.fastest];
    choice.odds_of_fastest = odds[chosen.fastest];
    for (const Drawback* const drawback : drawbacks_of(base, *choice.fastest)) {
      if (!contains(choice.plans.front().drawbacks, drawback)) choice.spared.push_back(drawback);
    }
  }
  if (question.trials > 0) propose(choice, std::move(contenders), front, base, question.trials);
  return choice;
}

}  // namespace headroom
