// Inverse questions: instead of the best strategy at a given size, the extreme value of one size at which
// some strategy of a space still fits. Each answer is exact at its granularity. Everything beyond it was
// tried, or is ruled out by a rule that tests check against trying everything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/watch.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// min_devices: fewest GPUs (a divisor of a node, or whole nodes). max_batch: largest global batch.
// max_sequence: longest sequence. max_layers: deepest model of this width.
enum class Extreme : std::uint8_t { min_devices, max_batch, max_sequence, max_layers };

template <>
inline constexpr std::array<Spelling<Extreme>, 4> spellings<Extreme>{{
    {Extreme::min_devices, "min-devices"},
    {Extreme::max_batch, "max-batch"},
    {Extreme::max_sequence, "max-sequence"},
    {Extreme::max_layers, "max-layers"},
}};

// Defaults: the most GPUs that a scan tries, and the multiple that sequence lengths have for kernels to be
// efficient.
inline constexpr std::int64_t usual_most_devices = 16384;
inline constexpr std::int64_t usual_sequence_step = 128;

// A training run that must end by a deadline. The batch and, as GPUs fail, their number determine how long an
// iteration may take.
struct RunLimit {
  Training training;
  Seconds deadline;
  double share = 1;  // largest part of the deadline that the predicted time may be
  friend bool operator==(const RunLimit&, const RunLimit&) = default;
};

struct Question {
  Extreme extreme = Extreme::min_devices;
  std::int64_t step = 1;           // only its multiples are tried; min_devices tries whole nodes instead
  std::int64_t most = most_count;  // largest value that is tried
  // Longest iteration time allowed; for min_devices and max_batch only. An answer that a run limits has it
  // too.
  std::optional<Seconds> within;
  std::optional<RunLimit> run;  // for min_devices only
  friend bool operator==(const Question&, const Question&) = default;
};

struct Found {
  Question question;
  std::optional<std::int64_t> value;  // empty if nothing fits at any value
  std::int64_t least = 1;             // min_devices: fewer cannot hold the model's state or compute in time
  // Largest microbatch that fits while t p microbatches go through every pipeline. Set for a max_batch
  // without a bound: where accumulating gradients takes no memory, memory limits the microbatch and not the
  // batch.
  std::optional<std::int64_t> micro_batch;
  bool at_least =
      false;             // max_batch: larger batches were not tried, since no pipeline gets more microbatches
  bool stopped = false;  // the watch ended the search: `value`, if any, is the furthest that was found to fit
  // If nothing fits at any value: the rule that keeps every layout from being legal on the most GPUs tried.
  // Without such a rule, `most_model_parallel` is the largest TP x PP of a legal layout.
  std::optional<Problem> obstacle;
  std::int64_t most_model_parallel = 0;
  friend bool operator==(const Found&, const Found&) = default;
};

// Answers the question. Ignores the value that the request and the space have for the size in question.
// Throws InputError for `within` on a system whose performance is not known.
Found find(const Request& base, const Space& space, const Question& question, const Watch& watch = {});

// Answers the question for several global batches: returns the furthest value that any of them reaches.
Found find(const Request& base, const Space& space, const Question& question,
           std::span<const std::int64_t> global_batches, const Watch& watch = {});

// Returns the longest iteration time allowed for a batch on so many GPUs, if the question limits it.
std::optional<Seconds> within_of(const Question& question, const Workload& workload, std::int64_t devices);

// Sets the size in question to `value` in the request and its space.
void put(Extreme extreme, std::int64_t value, Request& base, Space& space);

}  // namespace headroom
