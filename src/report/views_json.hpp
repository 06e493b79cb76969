// Views of a plan (answer/views.hpp) as JSON.
#pragma once

#include "headroom/answer/views.hpp"
#include "report/json.hpp"

namespace headroom {

// Passes that a schedule shows, of all its ranks, and its ranks. A page of as many stays small and smooth.
inline constexpr std::int64_t most_shown_passes = 6000;
inline constexpr std::int64_t most_shown_ranks = 32;

// Columns of whole microseconds and of indices into `levels_bytes`. With too many passes, only those that
// begin by `shown_seconds`; with too many ranks, the first, the last, the one of the peak and some between.
OrderedJson schedule_json(const Trace& trace, std::int64_t peak_rank);
OrderedJson views_json(const Views& views, std::int64_t peak_rank);

}  // namespace headroom
