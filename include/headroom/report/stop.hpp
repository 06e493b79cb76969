// Reports of work that was stopped before its end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"

namespace headroom {

enum class StopReason : std::uint8_t { time_limit, interrupted };

template <>
inline constexpr std::array<Spelling<StopReason>, 2> spellings<StopReason>{{
    {StopReason::time_limit, "time_limit"},
    {StopReason::interrupted, "interrupted"},
}};

struct Stop {
  StopReason reason = StopReason::time_limit;
  std::optional<Seconds> after;  // the time limit
};

// Returns "stopped after 10 s" or "stopped by Ctrl-C".
std::string stopped_text(const Stop& stop);

}  // namespace headroom
