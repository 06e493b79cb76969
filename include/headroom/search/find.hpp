// Inverse questions: not the best strategy at a size, but the furthest that one size can go while some strategy of a
// space still fits. Each answer is exact at its granularity: whatever lies beyond it was tried, or is ruled out by a
// rule that tests prove against trying everything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/names.hpp"
#include "headroom/plan/capacity.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// min_devices asks for the fewest devices (a part of a node that divides it, or whole nodes), max_batch for the largest
// global batch, max_sequence for the longest sequence, max_layers for the deepest model of this width.
enum class Extreme : std::uint8_t { min_devices, max_batch, max_sequence, max_layers };

template <>
inline constexpr std::array<Spelling<Extreme>, 4> spellings<Extreme>{{
    {Extreme::min_devices, "min-devices"},
    {Extreme::max_batch, "max-batch"},
    {Extreme::max_sequence, "max-sequence"},
    {Extreme::max_layers, "max-layers"},
}};

// These hold where nothing else is asked: where a scan of device counts ends, and of what lengths kernels are made for.
inline constexpr std::int64_t usual_most_devices = 16384;
inline constexpr std::int64_t usual_sequence_step = 128;

// A training run that is to end in time: what an iteration may take follows from the batch and, as devices fail, from
// their number.
struct RunLimit {
  Training training;
  Seconds deadline;
  double share = 1;  // of that, what its predicted time may be
  friend bool operator==(const RunLimit&, const RunLimit&) = default;
};

struct Question {
  Extreme extreme = Extreme::min_devices;
  std::int64_t step = 1;  // only multiples of it are looked at; min_devices looks at whole nodes instead
  std::int64_t most = most_count;  // nothing above it is looked at
  // How long an iteration may take; for min_devices and max_batch only. An answer that is bound by a run has it too.
  std::optional<Seconds> within;
  std::optional<RunLimit> run;  // for min_devices only
  friend bool operator==(const Question&, const Question&) = default;
};

struct Found {
  Question question;
  std::optional<std::int64_t> value;  // empty where nothing fits at any value
  std::int64_t least = 1;             // min_devices: fewer cannot hold the model's state, or compute in time
  // max_batch without a bound, where accumulating gradients takes no memory: memory then bounds the microbatch, not the
  // batch. This is the largest microbatch that fits while t p of them go through every pipeline.
  std::optional<std::int64_t> micro_batch;
  bool at_least =
      false;  // max_batch: larger ones were not looked at, since no pipeline is given more microbatches
  // Where nothing fits at any value: what keeps every layout from being legal, on the most devices that were looked at; and
  // else the largest TP x PP of a legal one.
  std::optional<Problem> obstacle;
  std::int64_t most_model_parallel = 0;
  friend bool operator==(const Found&, const Found&) = default;
};

// Ignores what the request and the space say of the thing asked for. Throws InputError where `within` is asked of a
// system whose performance is not known.
Found find(const Request& base, const Space& space, const Question& question);

// The same where the global batch is any of several: the furthest that any of them goes.
Found find(const Request& base, const Space& space, const Question& question,
           std::span<const std::int64_t> global_batches);

// What an iteration may take for a batch on so many devices, if that is bounded.
std::optional<Seconds> within_of(const Question& question, const Workload& workload, std::int64_t devices);

// Puts the value in place of what the request and its space say of the thing asked for.
void put(Extreme extreme, std::int64_t value, Request& base, Space& space);

}  // namespace headroom
