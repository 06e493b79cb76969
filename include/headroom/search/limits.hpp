// What limits an answer: what memory keeps the best plan from, and what would make a request feasible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headroom/search/search.hpp"

namespace headroom {

// A change that would make a plan faster, but for which there is no memory.
struct BlockedChange {
  std::string flags;
  Seconds iteration;
  Bytes missing;
  friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};

// The fastest of the changes on the same devices that do not fit, if any would be faster.
std::optional<BlockedChange> blocked_by_memory(const Plan& plan);

// What would make a space feasible, one thing at a time, where something does.
struct Relief {
  std::optional<std::int64_t> devices;   // twice as many, or twice that, ...: the first that is feasible
  std::optional<std::int64_t> batch;     // half the global batch, or half of that, ...
  std::optional<std::int64_t> sequence;  // half the sequence, or half of that, ...
  friend bool operator==(const Relief&, const Relief&) = default;
};

Relief relief(const Request& base, const Space& space);

}  // namespace headroom
