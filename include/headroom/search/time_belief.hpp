// What is believed of the times of some strategies of one question, before and after runs of theirs were
// measured. The logarithms of the times are jointly normal: around the predictions, with what two strategies
// share of their errors (plan/shared_error.hpp). A measured run therefore says most of the strategies that
// are like it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headroom/plan/interval.hpp"
#include "headroom/plan/shared_error.hpp"
#include "headroom/search/search.hpp"

namespace headroom {

struct TimeBelief {
  std::vector<double> log_seconds;  // mean of each strategy
  std::vector<double> covariance;   // of each two, row by row
  friend bool operator==(const TimeBelief&, const TimeBelief&) = default;
};

// A run of the strategy at a place of the list.
struct Measurement {
  std::size_t of = 0;
  Seconds time;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// Returns the belief in predicted times alone, in the order of the candidates: each has the deviation of the
// spread, or that of all shared errors together if that is more.
TimeBelief believed(std::span<const Candidate> candidates, const Spread& spread, const SharedErrors& errors);

// Returns the belief once these runs are known. A measured strategy takes what was measured; of several
// measurements of one, their geometric mean.
TimeBelief given(const TimeBelief& belief, std::span<const Measurement> measurements);

// Returns the median of what a strategy may take, and the interval of `interval_level`.
Seconds expected(const TimeBelief& belief, std::size_t of);
IterationInterval interval(const TimeBelief& belief, std::size_t of);

// Returns the standard deviation of the logarithm of the ratio of two strategies' times.
double deviation_between(const TimeBelief& belief, std::size_t x, std::size_t y);

// Returns whether `longer`, the logarithm of the ratio of two times, is within noise of standard deviation
// `deviation`: the odds that the longer time really is the longer one are below `interval_level`.
bool within_noise(double longer, double deviation);

// Returns whether x is equal to y within noise.
bool equal_within_noise(const TimeBelief& belief, std::size_t x, std::size_t y);

// Returns the odds of each of the first `count` strategies to be the fastest of them, in steps of 1/4096: the
// share of so many pseudo-random draws, the same ones each time.
std::vector<double> odds_of_fastest(const TimeBelief& belief, std::size_t count);

// Strategies to measure, and what is lost with and without: the mean part of an iteration by which the
// strategy then believed to be the fastest is slower than the one that is.
struct Trials {
  std::vector<std::size_t> of;  // the most telling first
  double loss_before = 0;
  std::vector<double> loss_after;  // of the first, of the first two, ...
  friend bool operator==(const Trials&, const Trials&) = default;
};

// Returns up to `most` strategies to measure that were not: the one believed to be the fastest, then one
// after the other those that cut the loss most for the time of an iteration. Stops where another one would
// tell nothing.
Trials most_telling(const TimeBelief& belief, std::size_t most);

}  // namespace headroom
