// Inverse questions: not the best strategy at a size, but the furthest that one size can go while some strategy of a
// space still fits. Each answer is exact at its granularity: whatever lies beyond it was tried, or is ruled out by a
// rule that tests prove against trying everything.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "headroom/core/names.hpp"
#include "headroom/search/space.hpp"

namespace headroom {

// min_devices: the fewest devices: parts of a node that divide it, then whole nodes. max_batch: the largest global
// batch. max_sequence: the longest sequence. max_layers: the deepest model of this width.
enum class Extreme : std::uint8_t { min_devices, max_batch, max_sequence, max_layers };

template <>
inline constexpr std::array<Spelling<Extreme>, 4> spellings<Extreme>{{
    {Extreme::min_devices, "min-devices"},
    {Extreme::max_batch, "max-batch"},
    {Extreme::max_sequence, "max-sequence"},
    {Extreme::max_layers, "max-layers"},
}};

// Where nothing else is asked: a bound for scans of device counts, and lengths that kernels are made for.
inline constexpr std::int64_t usual_most_devices = 16384;
inline constexpr std::int64_t usual_sequence_step = 128;

struct Question {
  Extreme extreme = Extreme::min_devices;
  std::int64_t step = 1;  // only its multiples are looked at; of devices, whole nodes are
  std::int64_t most = std::numeric_limits<std::int32_t>::max();  // nothing above is looked at
  std::optional<Seconds> within;  // that an iteration may take; of min_devices and max_batch only
  friend bool operator==(const Question&, const Question&) = default;
};

struct Found {
  Question question;
  std::optional<std::int64_t> value;  // none: nothing fits at any
  std::int64_t least = 1;             // min_devices: fewer cannot hold the model's state, or compute in time
  // max_batch of a question without a bound, where accumulating gradients takes no memory: what memory bounds then is the
  // microbatch. The largest that fits when t p of them go through every pipeline.
  std::optional<std::int64_t> micro_batch;
  bool at_least =
      false;  // max_batch: larger ones were not looked at, since no pipeline is given more microbatches
  friend bool operator==(const Found&, const Found&) = default;
};

// Of the request and the space, what the question asks for is ignored. Throws InputError where `within` is asked of a
// system whose performance is not known.
Found find(const Request& base, const Space& space, const Question& question);

// Makes a request and its space those of a value.
void put(Extreme extreme, std::int64_t value, Request& base, Space& space);

}  // namespace headroom
