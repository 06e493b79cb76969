// How far a number can be trusted: the interval in which a measurement should lie, which follows from how far
// predictions of measured runs of the same kind were off.
//
// An interval of a time is symmetric in the logarithm, from x / f to x f, since the sign of an error differs from cluster to
// cluster; one of memory is so about the middle of what runs held. Eight in ten of the runs known of a kind lie within it. How wide it is, is data (presets/spreads/, read by
// io/spreads_file.hpp): scripts/intervals derives that of times again from the runs, tests/papers/intervals_test.cpp that of
// memory, and both check the coverage where each group of runs is predicted by the spread of the others.
#pragma once

#include <array>
#include <string>

#include "headroom/plan/plan.hpp"

namespace headroom {

inline constexpr double interval_level = 0.8;

// What the rates of a training step rest on, from the narrowest interval to the widest.
enum class StepRates : std::uint8_t {
  own_runs,  // fitted to runs on the very system, whose file then says how far these were off
  fitted,    // the clock of a step was fitted to training steps on the device
  kernels,  // the kernels of the device were measured; the clock of a step, or flash attention that the model uses, is assumed
  experts,  // likewise, of a model with experts, of whose kernels the forward pass alone was measured; also of attention in
  // FP8, whose one rate meets its kernels badly, and which models with experts alone are known to have run with
  scaled,  // the kernels are those of another device, scaled by data sheets
};

StepRates step_rates(const Request& request);

// Whether they say nothing of a training step on the device, so that its interval is that of other devices' runs.
constexpr bool transferred(StepRates rates) {
  return rates != StepRates::own_runs && rates != StepRates::fitted;
}

// What the logarithm of measured over predicted stays within on either side of `centre`, in 80% of the runs known; and
// which runs those are. `slower`: as good as all of them took longer than predicted. An interval is as wide on both sides all the same,
// since the next cluster may be faster, but odds of a time count every error as a longer one.
struct Spread {
  double centre = 0;
  double logarithm = 0;
  bool slower = false;
  std::string source;
  friend bool operator==(const Spread&, const Spread&) = default;
};

struct Spreads {
  Spread fitted;  // of iteration times, by what the rates rest on
  Spread kernels;
  Spread experts;
  Spread scaled;
  Spread allocated;  // of bytes, where the training stack counts what is alive at the peak
  Spread saved;      // of bytes, where it counts only what is saved
  friend bool operator==(const Spreads&, const Spreads&) = default;
};

// The spread of a request's iteration times. It follows from the system, the model and whether attention is in FP8, and is that of
// every strategy of a search.
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

// The odds that a measured iteration takes no longer than `limit`: a spread is that of a normal distribution of the
// logarithm of measured over predicted, or of its half above the centre where runs are slower.
double odds_within(Seconds predicted, Seconds limit, const Spread& spread);

// What may be predicted for a measured iteration to take no longer than `limit` with these odds. Expects odds between 0
// and 1, either excluded.
Seconds predicted_for(Seconds limit, double odds, const Spread& spread);

// The bytes that the peak rank's tensors take: without reserves, which no run tells apart.
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
