// Choices that predictions would have made among strategies that were measured: groups of runs of one
// question (model, GPUs, sequence, precision) that differ in their strategy. Of each group: the place of the
// chosen strategy among the measured ones, how much slower it is than the best (its regret), and what a few
// trials would have cut off that. Also what two strategies share of their errors (plan/shared_error.hpp), by
// such groups.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/plan/shared_error.hpp"

namespace headroom {

// A strategy of a question. Several runs of it count as one, with their geometric mean.
struct MeasuredStrategy {
  std::string name;  // of its first run
  Strategy strategy;
  std::int64_t global_batch = 0;
  Bytes peak;         // predicted, of the peak rank
  Seconds predicted;  // of an iteration for each of its sequences, as the batches of a group may differ
  Seconds measured;
  friend bool operator==(const MeasuredStrategy&, const MeasuredStrategy&) = default;
};

struct MeasuredChoice {
  std::string question;  // "llama-3-70b of 80 layers, 64 x H100-SXM5-80GB, 8192 tokens, bf16"
  std::string source;    // of its first run
  Request base;          // of its first run
  std::vector<MeasuredStrategy> strategies;  // at least two, fastest measured first
  std::size_t by_time = 0;                   // predicted to be the fastest
  std::size_t chosen = 0;                    // search/choice.hpp
  double odds = 0;                           // stated: that the one predicted to be the fastest is
  double loss = 0;                           // stated: its mean regret
  // Regret once so many trials are measured, those of search/time_belief.hpp: 0, 1, 2, ...
  std::vector<double> regret_after;
};

inline constexpr std::size_t most_trials_followed = 5;

// Returns how much longer a strategy takes than the best of its group, as a fraction.
double regret(const MeasuredChoice& choice, std::size_t of);

// Returns the choices in groups of the cases' iteration times. Each group is chosen from with the shared
// errors of the groups of other sources. Expects systems with performance figures and legal requests.
std::vector<MeasuredChoice> choices_among(const std::vector<MeasuredCase>& cases, const Spreads& spreads);

// Returns what strategies share of their errors, by groups in which both were measured and predicted within a
// quarter of the fastest; `source` stays empty. A trait's deviation is that of the pairs which differ in it
// alone, by their median, each group counting as one; traits with fewer than eight groups or three sources
// take the pairs of all single traits.
SharedErrors fitted_errors(const std::vector<MeasuredChoice>& choices);

}  // namespace headroom
