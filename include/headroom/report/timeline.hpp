// The schedule of `headroom estimate --timeline`: a row for each pipeline rank, time from left to right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/schedule/replay.hpp"

namespace headroom {

struct TimelineSize {
  std::int64_t columns = 100;  // of the whole row, label included
  std::int64_t rows = 16;      // of more ranks, as many evenly chosen: the first, the last and some between
  friend bool operator==(const TimelineSize&, const TimelineSize&) = default;
};

// A column shows what the rank does at the middle of its time span, and so may miss a short transfer; two passes beside each
// other take turns. Where a rank
// has more steps than there are columns, it shows how much of its time span the rank computes. `steps` are those of
// `ranks` ranks, and `end` is where the last column ends. A legend follows.
std::string timeline(const std::vector<ReplayedStep>& steps, std::int64_t ranks, Seconds end,
                     const TimelineSize& size = {});

}  // namespace headroom
