// Intervals in which a measurement should lie. They follow from the errors of predictions of similar measured
// runs.
//
// The interval of a time x is symmetric in the logarithm, from x / f to x f, since the sign of an error
// differs from cluster to cluster. The interval of memory is symmetric about the middle of what runs held.
// Each covers 80% of the known runs of a kind. Widths are data (presets/spreads/, read by
// io/spreads_file.hpp). scripts/intervals derives the widths for times from the runs,
// tests/papers/intervals_test.cpp those for memory. Both check the coverage when each group of runs is
// predicted from the spread of the other groups.
#pragma once

#include <array>
#include <string>

#include "headroom/plan/plan.hpp"
#include "headroom/plan/shared_error.hpp"

namespace headroom {

inline constexpr double interval_level = 0.8;

// Evidence for the rates of a training step, from the narrowest interval to the widest.
enum class StepRates : std::uint8_t {
  // Fitted to runs on this very system; the system's file states the errors of these runs.
  own_runs,
  // The clock of a training step was fitted to training steps on the GPU.
  fitted,
  // The GPU's kernels were measured. The clock of a training step, or the flash attention that the model
  // uses, is assumed.
  kernels,
  // As `kernels`, for a model with experts: only the forward pass of expert kernels was measured. Also for
  // FP8 attention, whose single rate predicts its kernels badly; only models with experts are known to have
  // run with it.
  experts,
  // The kernels are another GPU's, scaled by data sheets.
  scaled,
};

StepRates step_rates(const Request& request);

// Returns whether no training step was measured on the GPU, so that the interval comes from runs on other
// GPUs.
constexpr bool transferred(StepRates rates) {
  return rates != StepRates::own_runs && rates != StepRates::fitted;
}

// Spread of prediction errors, with the runs that it comes from. In 80% of the known runs, the logarithm of
// measured over predicted lies within `logarithm` of `centre`. `slower`: nearly all of the runs took longer
// than predicted. An interval is still symmetric, since the next cluster may be faster. Odds, however, count
// every error as a longer time.
struct Spread {
  double centre = 0;
  double logarithm = 0;
  bool slower = false;
  std::string source;
  friend bool operator==(const Spread&, const Spread&) = default;
};

struct Spreads {
  Spread fitted;  // this and the next three: iteration times, by StepRates
  Spread kernels;
  Spread experts;
  Spread scaled;
  Spread allocated;     // bytes, if the training stack counts all allocated tensors at the peak
  Spread saved;         // bytes, if the training stack counts only saved tensors
  SharedErrors shared;  // of iteration times of one question
  friend bool operator==(const Spreads&, const Spreads&) = default;
};

// Returns the quantile of the standard normal distribution at `odds`, strictly between 0 and 1.
double normal_quantile(double odds);

// Return the standard deviation of the logarithm that a spread stands for, and the reverse.
double standard_deviation(const Spread& spread);
Spread spread_of(double deviation);

// Spread of a request's iteration times. It follows from the system, the model and whether attention is in
// FP8, and holds for every strategy of a search.
struct IterationSpread {
  StepRates rates{};
  Spread spread;
  friend bool operator==(const IterationSpread&, const IterationSpread&) = default;
};

// Expects a system with performance figures.
IterationSpread iteration_spread(const Request& request, const Spreads& spreads);

struct IterationInterval {
  Seconds low;
  Seconds high;
  friend bool operator==(const IterationInterval&, const IterationInterval&) = default;
};

IterationInterval iteration_interval(Seconds predicted, const Spread& spread);

// Returns the odds that a measured iteration takes no longer than `limit`. The logarithm of measured over
// predicted is normally distributed. If runs are slower, only the half of the distribution above the centre
// counts.
double odds_within(Seconds predicted, Seconds limit, const Spread& spread);

// Returns the longest predicted time for which a measured iteration takes no longer than `limit` with these
// odds. Expects odds strictly between 0 and 1.
Seconds predicted_for(Seconds limit, double odds, const Spread& spread);

// Returns the bytes of the peak rank's tensors, without non-torch memory, which measured runs do not report
// separately.
Bytes allocated(const Plan& plan);

struct AllocatedInterval {
  Bytes predicted;
  Bytes low;
  Bytes high;
  std::string source;
  friend bool operator==(const AllocatedInterval&, const AllocatedInterval&) = default;
};
const Spread& allocated_spread(const Spreads& spreads, const Software& software);
AllocatedInterval allocated_interval(const Plan& plan, const Spreads& spreads);

template <>
inline constexpr std::array<Spelling<StepRates>, 5> spellings<StepRates>{{
    {StepRates::own_runs, "own_runs"},
    {StepRates::fitted, "fitted"},
    {StepRates::kernels, "kernels"},
    {StepRates::experts, "experts"},
    {StepRates::scaled, "scaled"},
}};

}  // namespace headroom
