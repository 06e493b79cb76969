// What is believed of the times of strategies, alone and once some were measured.
#include "headroom/search/time_belief.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "headroom/io/spreads_file.hpp"

namespace headroom {
namespace {

const SharedErrors believed_errors{
    .tensor = 0.03, .pipeline = 0.04, .micro_batch = 0.02, .own = 0.01, .source = {}};
const Spread believed_spread{.logarithm = 0.1, .source = {}};

Strategy one_strategy(std::int64_t t, std::int64_t p, std::int64_t b) {
  return {.tensor_parallel = t, .pipeline_parallel = p, .micro_batch = b};
}

// Three strategies: the second is like the first but for its microbatch, the third has nothing of theirs.
const std::vector<Strategy> three{one_strategy(4, 2, 1), one_strategy(4, 2, 2), one_strategy(2, 4, 4)};

std::vector<Candidate> candidates_in(const std::vector<double>& seconds) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    candidates.push_back({.strategy = three[i], .iteration = Seconds(seconds[i])});
  return candidates;
}

TimeBelief belief_of(const std::vector<double>& seconds) {
  return believed(candidates_in(seconds), believed_spread, believed_errors);
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

TEST_CASE("shared errors: strategies differ by the errors of the traits that tell them apart") {
  CHECK(traits_apart(three[0], three[1]) == std::vector<std::string_view>{"micro_batch"});
  CHECK(traits_apart(three[0], three[2]) ==
        std::vector<std::string_view>{"tensor", "pipeline", "micro_batch"});
  CHECK(deviation_between(three[0], three[0], believed_errors) == 0);
  CHECK(deviation_between(three[0], three[1], believed_errors) ==
        doctest::Approx(std::sqrt(2 * (0.0004 + 0.0001))));
  CHECK(deviation_between(three[0], three[2], believed_errors) ==
        doctest::Approx(std::sqrt(2 * (0.0009 + 0.0016 + 0.0004 + 0.0001))));
  // Every trait has a deviation in the spreads that ship, or stands for those that do.
  CHECK(embedded_spreads().shared.own > 0);
  CHECK(embedded_spreads().shared.tensor > 0);
}

TEST_CASE("time belief: predictions alone have the interval of their spread") {
  const TimeBelief belief = belief_of({10, 11, 12});
  CHECK(expected(belief, 1).count() == doctest::Approx(11));
  CHECK(interval(belief, 0).low.count() == doctest::Approx(10 * std::exp(-0.1)));
  CHECK(interval(belief, 0).high.count() == doctest::Approx(10 * std::exp(0.1)));
  CHECK(deviation_between(belief, 0, 2) ==
        doctest::Approx(deviation_between(three[0], three[2], believed_errors)));
  CHECK(deviation_between(belief, 1, 1) == 0);
}

TEST_CASE("time belief: a spread below what strategies differ by gives way") {
  const Spread narrow{.logarithm = 0.001, .source = {}};
  const TimeBelief belief = believed(candidates_in({1, 1, 1}), narrow, believed_errors);
  CHECK(deviation_between(belief, 0, 2) ==
        doctest::Approx(deviation_between(three[0], three[2], believed_errors)));
}

TEST_CASE("time belief: two strategies, against the closed form") {
  const TimeBelief before = belief_of({10, 11});
  const double variance = std::pow(0.1 / normal_quantile(0.9), 2);
  const double shared = variance - 0.0005;
  const std::vector<Measurement> measured{{.of = 0, .time = Seconds(12)}};
  const TimeBelief after = given(before, measured);
  CHECK(expected(after, 0).count() == doctest::Approx(12));
  CHECK(after.covariance[0] == doctest::Approx(0).epsilon(1e-9));
  CHECK(after.log_seconds[1] == doctest::Approx(std::log(11.0) + shared / variance * std::log(1.2)));
  CHECK(after.covariance[3] == doctest::Approx(variance - shared * shared / variance));
}

TEST_CASE("time belief: a run says most of the strategies that are like it") {
  const TimeBelief before = belief_of({10, 10, 10});
  const TimeBelief after = given(before, std::vector<Measurement>{{.of = 0, .time = Seconds(12)}});
  CHECK(expected(after, 1) > expected(after, 2));
  CHECK(expected(after, 2) > Seconds(10));
  CHECK(deviation_between(after, 0, 1) < deviation_between(after, 0, 2));
}

TEST_CASE("time belief: several runs of one strategy count as their mean, and all measured leaves no doubt") {
  const std::vector<Measurement> runs{{.of = 0, .time = Seconds(8)},
                                      {.of = 0, .time = Seconds(12.5)},
                                      {.of = 1, .time = Seconds(11)},
                                      {.of = 2, .time = Seconds(9)}};
  const TimeBelief after = given(belief_of({10, 10, 10}), runs);
  CHECK(expected(after, 0).count() == doctest::Approx(10));
  CHECK(odds_of_fastest(after, 3) == std::vector<double>{0, 0, 1});
  CHECK_FALSE(equal_within_noise(after, 0, 2));
  CHECK(most_telling(after, 3).of.empty());
}

TEST_CASE("time belief: odds sum to one, are equal for equals, and follow the times") {
  const std::vector<double> equal = odds_of_fastest(belief_of({10, 10}), 2);
  CHECK(sum(equal) == 1);
  CHECK(equal[0] == doctest::Approx(0.5).epsilon(0.05));
  const std::vector<double> apart = odds_of_fastest(belief_of({10, 10.5, 13}), 3);
  CHECK(sum(apart) == 1);
  CHECK(apart[0] > apart[1]);
  CHECK(apart[1] > apart[2]);
  // Two strategies: the normal distribution of their difference.
  const double deviation = deviation_between(three[0], three[1], believed_errors);
  const double odds = std::erfc(-std::log(1.02) / deviation / std::sqrt(2.0)) / 2;
  CHECK(odds_of_fastest(belief_of({10, 10.2}), 2)[0] == doctest::Approx(odds).epsilon(0.03));
}

TEST_CASE("time belief: equal within noise up to odds of 80%") {
  const double deviation = deviation_between(three[0], three[1], believed_errors);
  const double limit = 10 * std::exp(normal_quantile(interval_level) * deviation);
  CHECK(equal_within_noise(belief_of({10, 0.999 * limit}), 1, 0));
  CHECK_FALSE(equal_within_noise(belief_of({10, 1.001 * limit}), 1, 0));
}

TEST_CASE("trials: the fastest first, then what cuts the loss most; none without a doubt") {
  const Trials trials = most_telling(belief_of({10, 10.1, 10.2}), 3);
  REQUIRE(trials.of.size() >= 2);
  CHECK(trials.of[0] == 0);
  CHECK(trials.loss_before > trials.loss_after.back());
  CHECK(std::is_sorted(trials.loss_after.rbegin(), trials.loss_after.rend()));
  CHECK(trials.loss_after.size() == trials.of.size());
  CHECK(most_telling(belief_of({10, 10.1, 10.2}), 1).of.size() == 1);
  CHECK(most_telling(belief_of({10, 20, 30}), 3).of.empty());
  CHECK(most_telling(belief_of({10}), 3).of.empty());
}

}  // namespace headroom
