// How far to trust a number: the interval in which a measurement should lie, derived from how far predictions of
// measured runs of the same kind were off.
//
// An interval is symmetric in the logarithm, x / f to x f, since the sign of an error differs from cluster to cluster.
// f is such that eight in ten of the runs known of a kind lie within; tests/papers/intervals_test.cpp derives it again
// from the runs, and checks the coverage where each source of runs is predicted by the spread of the others.
#pragma once

#include <array>
#include <string_view>

#include "headroom/plan/plan.hpp"

namespace headroom {

inline constexpr double interval_level = 0.8;

// fitted: how fast a training step runs was fitted to training steps on the system's device. transferred: its clock,
// or flash attention that the model uses, was assumed.
enum class StepRates : std::uint8_t { fitted, transferred };

StepRates step_rates(const Request& request);

// Of the logarithm of measured over predicted, what 80% of the runs known stay within, and which those are.
struct Spread {
  double logarithm = 0;
  std::string_view source;
  friend bool operator==(const Spread&, const Spread&) = default;
};

Spread iteration_spread(StepRates rates);
Spread allocated_spread();

struct IterationInterval {
  StepRates rates{};
  Seconds low;
  Seconds high;
  friend bool operator==(const IterationInterval&, const IterationInterval&) = default;
};

// Expects a plan with timing.
IterationInterval iteration_interval(const Plan& plan);

// Of the bytes that the fullest rank's tensors take: without reserves, which no run tells apart.
struct AllocatedInterval {
  Bytes predicted;
  Bytes low;
  Bytes high;
  friend bool operator==(const AllocatedInterval&, const AllocatedInterval&) = default;
};
AllocatedInterval allocated_interval(const Plan& plan);

template <>
inline constexpr std::array<Spelling<StepRates>, 2> spellings<StepRates>{{
    {StepRates::fitted, "fitted"},
    {StepRates::transferred, "transferred"},
}};

}  // namespace headroom
