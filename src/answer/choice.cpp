#include "headroom/answer/choice.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/search/choice.hpp"
#include "search/division.hpp"
#include "search/settling.hpp"

namespace headroom {
namespace {

// Most plans that are compared: further ones are far slower, and their odds next to nothing.
constexpr std::size_t most_compared = 32;
constexpr std::size_t most_simplified = 4;

// Evaluates the strategy of a run. It fits as well as the plans, since it ran.
Candidate evaluated(const Request& base, const TrialResult& run, Verdict verdict) {
  Request request = base;
  request.strategy = run.strategy;
  try {
    const Evaluation evaluation = evaluate(request);
    const Plan& plan = account(evaluation);
    Candidate candidate{.strategy = run.strategy,
                        .iteration = plan.timing->iteration.total,
                        .mfu = plan.timing->throughput.mfu};
    candidate = settled_candidate(base, std::move(candidate));
    candidate.verdict = verdict;
    return candidate;
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = run.name + " " + problem.where;
    throw InputError(std::move(problems));
  }
}

// Takes out the plans that ran out of memory, and puts in those that ran and are not among the first plans.
// Returns the places of the runs.
std::vector<Measurement> take_in(std::vector<Candidate>& plans, std::size_t& compared, const Request& base,
                                 const std::vector<TrialResult>& measured) {
  const Verdict verdict = plans.front().verdict;
  for (const TrialResult& run : measured) {
    if (run.iteration) continue;
    const auto begin = plans.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(compared);
    const auto kept =
        std::remove_if(begin, end, [&](const Candidate& it) { return it.strategy == run.strategy; });
    compared = static_cast<std::size_t>(kept - begin);
    plans.erase(kept, end);
  }
  std::vector<Measurement> measurements;
  for (const TrialResult& run : measured) {
    if (!run.iteration) continue;
    const auto same = [&](const Candidate& it) { return it.strategy == run.strategy; };
    const auto end = plans.begin() + static_cast<std::ptrdiff_t>(compared);
    auto place = std::find_if(plans.begin(), end, same);
    if (place == end) {
      place = plans.insert(end, evaluated(base, run, verdict));
      ++compared;
    }
    measurements.push_back({.of = static_cast<std::size_t>(place - plans.begin()), .time = *run.iteration});
  }
  return measurements;
}

// Puts simpler strategies in the place of the first plans that are equal to the fastest within noise.
void simplify(std::vector<Candidate>& plans, std::size_t& compared, const Request& base, const Space& space,
              const SharedErrors& errors) {
  const Candidate fastest = plans.front();
  for (std::size_t i = 0; i < std::min(compared, most_simplified); ++i) {
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

}  // namespace

PlanChoice choose(std::vector<Candidate>& plans, std::size_t confirmed, const Request& base,
                  const Space& space, const ChoiceQuestion& question) {
  EXPECTS(!plans.empty());
  const Verdict verdict = plans.front().verdict;
  const auto others =
      std::find_if(plans.begin(), plans.end(), [&](const Candidate& it) { return it.verdict != verdict; });
  std::size_t compared = std::min(
      {static_cast<std::size_t>(others - plans.begin()), std::max<std::size_t>(confirmed, 1), most_compared});
  const Spreads& spreads = embedded_spreads();
  PlanChoice choice{.exact = question.exact, .measured = question.measured.size()};
  const Candidate fastest = plans.front();
  if (!question.exact) simplify(plans, compared, base, space, spreads.shared);
  const std::vector<Measurement> measurements = take_in(plans, compared, base, question.measured);
  if (plans.empty()) return choice;
  compared = std::max<std::size_t>(compared, 1);
  std::vector<Candidate> all(plans.begin(), plans.begin() + static_cast<std::ptrdiff_t>(compared));
  const bool is_plan = std::any_of(all.begin(), all.end(),
                                   [&](const Candidate& it) { return it.strategy == fastest.strategy; });
  const bool ran = std::none_of(
      question.measured.begin(), question.measured.end(),
      [&](const TrialResult& run) { return !run.iteration && run.strategy == fastest.strategy; });
  if (!is_plan && ran) all.push_back(fastest);
  std::vector<Strategy> strategies;
  std::vector<Seconds> predicted;
  for (const Candidate& it : all) {
    strategies.push_back(it.strategy);
    predicted.push_back(it.iteration);
  }
  const TimeBelief belief = given(
      believed(strategies, predicted, iteration_spread(base, spreads).spread, spreads.shared), measurements);
  const Chosen among = choice_among(base, all, belief);
  const std::vector<double> odds = odds_of_fastest(belief);

  std::vector<double> priced;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double price = question.exact || !among.equal[i] ? 0 : price_of(drawbacks_of(base, all[i]));
    priced.push_back((1 + price) * expected(belief, i).count());
  }
  std::vector<std::size_t> order(compared);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    if (!question.exact && among.equal[x] != among.equal[y]) return among.equal[x] == true;
    return priced[x] < priced[y];
  });
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t i = order[place];
    PlanBelief one{.odds = odds[i], .equal = among.equal[i], .drawbacks = drawbacks_of(base, all[i])};
    if (!measurements.empty()) {
      one.expected = expected(belief, i);
      one.interval = interval(belief, i);
      for (const Measurement& run : measurements) {
        if (run.of == i) one.measured = run.time;
      }
    }
    plans[place] = all[i];
    choice.plans.push_back(std::move(one));
  }
  if (among.fastest != order.front()) {
    choice.fastest = all[among.fastest];
    choice.odds_of_fastest = odds[among.fastest];
    for (const Drawback* const drawback : drawbacks_of(base, *choice.fastest)) {
      if (!contains(choice.plans.front().drawbacks, drawback)) choice.spared.push_back(drawback);
    }
  }
  if (question.trials > 0) {
    const Trials trials = most_telling(belief, question.trials);
    choice.loss = trials.loss_before;
    for (std::size_t i = 0; i < trials.of.size(); ++i)
      choice.trials.push_back({.candidate = all[trials.of[i]], .loss_after = trials.loss_after[i]});
  }
  return choice;
}

}  // namespace headroom
