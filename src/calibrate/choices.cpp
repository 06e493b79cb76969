#include "headroom/calibrate/choices.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "headroom/model/precision.hpp"
#include "headroom/search/choice.hpp"

namespace headroom {
namespace {

std::string question_of(const Request& request) {
  std::string text = request.model.name + " of " + std::to_string(request.model.layers) + " layers, " +
                     std::to_string(devices(request.strategy)) + " x " + request.system.device + ", " +
                     std::to_string(request.workload.sequence) + " tokens, " +
                     std::string(name_of(request.strategy.precision));
  if (request.strategy.lora != Lora{}) text += ", LoRA";
  return text;
}

// Runs of one strategy.
struct Runs {
  MeasuredStrategy first;
  std::vector<double> predicted;  // logarithms
  std::vector<double> measured;
};

Seconds geometric_mean(const std::vector<double>& logarithms) {
  const double sum = std::accumulate(logarithms.begin(), logarithms.end(), 0.0);
  return Seconds(std::exp(sum / static_cast<double>(logarithms.size())));
}

// The runs of a question, by strategy.
struct Gathered {
  std::string source;
  Request base;
  std::vector<Runs> runs;
};

void add_run(Gathered& group, const MeasuredCase& it, double seconds) {
  const Evaluation evaluation = evaluate(it.request);
  const Plan& plan = account(evaluation);
  const std::int64_t batch = it.request.workload.global_batch;
  const auto same = [&](const Runs& runs) {
    return runs.first.strategy == it.request.strategy && runs.first.global_batch == batch;
  };
  auto runs = std::find_if(group.runs.begin(), group.runs.end(), same);
  if (runs == group.runs.end()) {
    group.runs.push_back(
        {.first = {
             .name = it.name, .strategy = it.request.strategy, .global_batch = batch, .peak = peak(plan)}});
    runs = group.runs.end() - 1;
  }
  const double sequences = real(batch);
  runs->predicted.push_back(std::log(plan.timing->iteration.total.count() / sequences));
  runs->measured.push_back(std::log(seconds / sequences));
}

std::vector<MeasuredChoice> gathered(const std::vector<MeasuredCase>& cases) {
  std::vector<std::string> order;
  std::map<std::string, Gathered> groups;
  for (const MeasuredCase& it : cases) {
    const auto figure = std::find_if(it.figures.begin(), it.figures.end(), [](const Figure& one) {
      return one.measure == Measure::iteration_seconds;
    });
    if (figure == it.figures.end()) continue;
    const std::string question = question_of(it.request);
    const auto [group, is_new] =
        groups.try_emplace(question, Gathered{.source = it.source, .base = it.request});
    if (is_new) order.push_back(question);
    add_run(group->second, it, figure->value);
  }
  std::vector<MeasuredChoice> choices;
  for (const std::string& question : order) {
    Gathered& group = groups.at(question);
    const Strategy& one = group.runs.front().first.strategy;
    const bool differ = std::any_of(group.runs.begin(), group.runs.end(),
                                    [&](const Runs& runs) { return runs.first.strategy != one; });
    if (!differ) continue;
    MeasuredChoice choice{.question = question, .source = group.source, .base = std::move(group.base)};
    for (Runs& runs : group.runs) {
      runs.first.predicted = geometric_mean(runs.predicted);
      runs.first.measured = geometric_mean(runs.measured);
      choice.strategies.push_back(std::move(runs.first));
    }
    std::stable_sort(choice.strategies.begin(), choice.strategies.end(),
                     [](const auto& x, const auto& y) { return x.measured < y.measured; });
    choices.push_back(std::move(choice));
  }
  return choices;
}

std::vector<Candidate> candidates_of(const MeasuredChoice& choice) {
  std::vector<Candidate> candidates;
  for (const MeasuredStrategy& it : choice.strategies)
    candidates.push_back({.strategy = it.strategy, .peak = it.peak, .iteration = it.predicted});
  return candidates;
}

// Chooses, and chooses again after each of the trials.
void choose(MeasuredChoice& choice, const SharedErrors& errors, const Spread& spread) {
  const std::vector<Candidate> candidates = candidates_of(choice);
  const TimeBelief belief = believed(candidates, spread, errors);
  const Ranking first = ranked(choice.base, candidates, belief);
  choice.by_time = first.fastest;
  choice.chosen = first.order.front();
  choice.odds = odds_of_fastest(belief, candidates.size())[first.fastest];
  choice.regret_after = {regret(choice, choice.chosen)};
  const Trials trials = most_telling(belief, most_trials_followed);
  choice.loss = trials.loss_before;
  std::vector<Measurement> measured;
  for (std::size_t i = 0; i < most_trials_followed; ++i) {
    if (i < trials.of.size())
      measured.push_back({.of = trials.of[i], .time = choice.strategies[trials.of[i]].measured});
    const Ranking next = ranked(choice.base, candidates, given(belief, measured));
    choice.regret_after.push_back(regret(choice, measured.empty() ? choice.chosen : next.order.front()));
  }
}

// Errors of pairs, each with the weight of its share in its group.
struct PairErrors {
  std::vector<std::pair<double, double>> absolute;  // error, weight
  std::set<std::string> questions;
  std::set<std::string> sources;

  void add(double error, double weight, const MeasuredChoice& choice) {
    absolute.emplace_back(std::abs(error), weight);
    questions.insert(choice.question);
    sources.insert(choice.source);
  }

  // Returns the standard deviation of a pair's difference, by the half of the pairs within it: some published times
  // are outliers.
  [[nodiscard]] double deviation() const {
    std::vector<std::pair<double, double>> sorted = absolute;
    std::sort(sorted.begin(), sorted.end());
    double whole = 0;
    for (const auto& [error, weight] : sorted) whole += weight;
    double sum = 0;
    for (const auto& [error, weight] : sorted) {
      sum += weight;
      if (sum >= whole / 2) return error / normal_quantile(0.75);
    }
    return 0;
  }
};

// Two strategies of a group between which a choice is to be made, and how far their errors are apart.
struct Pair {
  std::vector<std::string_view> apart;
  double error = 0;
};

std::vector<Pair> pairs_of(const MeasuredChoice& choice) {
  constexpr double near = 1.25;  // of the fastest prediction
  const std::vector<MeasuredStrategy>& all = choice.strategies;
  Seconds least = all.front().predicted;
  for (const MeasuredStrategy& it : all) least = std::min(least, it.predicted);
  std::vector<Pair> pairs;
  for (std::size_t x = 0; x < all.size(); ++x) {
    for (std::size_t y = x + 1; y < all.size(); ++y) {
      if (std::max(all[x].predicted, all[y].predicted) > near * least) continue;
      pairs.push_back({.apart = traits_apart(all[x].strategy, all[y].strategy),
                       .error = std::log(all[x].measured / all[x].predicted) -
                                std::log(all[y].measured / all[y].predicted)});
    }
  }
  return pairs;
}

}  // namespace

double regret(const MeasuredChoice& choice, std::size_t of) {
  return choice.strategies[of].measured / choice.strategies.front().measured - 1;
}

SharedErrors fitted_errors(const std::vector<MeasuredChoice>& choices) {
  constexpr std::size_t least_questions = 8;
  constexpr std::size_t least_sources = 3;
  std::map<std::string_view, PairErrors> alone;
  PairErrors none;
  PairErrors single;
  for (const MeasuredChoice& choice : choices) {
    std::vector<Pair> pairs = pairs_of(choice);
    std::erase_if(pairs, [](const Pair& pair) { return pair.apart.size() > 1; });
    for (const auto& [apart, error] : pairs) {
      const double weight = 1 / static_cast<double>(pairs.size());
      if (apart.empty()) {
        none.add(error, weight, choice);
        continue;
      }
      single.add(error, weight, choice);
      alone[apart.front()].add(error, weight, choice);
    }
  }
  const double unexplained = none.deviation();  // of two strategies
  SharedErrors errors{.own = unexplained / std::sqrt(2), .source = {}};
  for (const StrategyTrait& trait : strategy_traits) {
    const PairErrors& its = alone[trait.name];
    const bool known = its.questions.size() >= least_questions && its.sources.size() >= least_sources;
    const double pair = known ? its.deviation() : single.deviation();
    errors.*trait.deviation = std::sqrt(std::max(0.0, pair * pair - unexplained * unexplained) / 2);
  }
  return errors;
}

std::vector<MeasuredChoice> choices_among(const std::vector<MeasuredCase>& cases, const Spreads& spreads) {
  std::vector<MeasuredChoice> choices = gathered(cases);
  std::map<std::string, SharedErrors> by_others;
  for (MeasuredChoice& choice : choices) {
    auto errors = by_others.find(choice.source);
    if (errors == by_others.end()) {
      std::vector<MeasuredChoice> others;
      std::copy_if(choices.begin(), choices.end(), std::back_inserter(others),
                   [&](const MeasuredChoice& other) { return other.source != choice.source; });
      errors = by_others.emplace(choice.source, fitted_errors(others.empty() ? choices : others)).first;
    }
    choose(choice, errors->second, iteration_spread(choice.base, spreads).spread);
  }
  return choices;
}

}  // namespace headroom
