// Schedule that `headroom estimate --timeline` draws: a row for each pipeline rank, time from left to right.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/schedule/replay.hpp"

namespace headroom {

struct TimelineSize {
  std::int64_t columns = 100;  // of the whole row, label included
  std::int64_t rows = 16;      // if there are more ranks: evenly spaced ones, the first and last included
  bool blocks = false;         // Unicode's blocks in the plot of memory
  friend bool operator==(const TimelineSize&, const TimelineSize&) = default;
};

// Draws the schedule and a legend. A column shows what the rank does in the middle of the column's time span,
// and so may miss a short transfer. Two passes that overlap take turns. If a rank has more steps than there
// are columns, a column shows how much of its time span the rank computes. `steps` belong to `ranks` ranks;
// `end` is where the last column ends.
std::string timeline(const std::vector<ReplayedStep>& steps, std::int64_t ranks, Seconds end,
                     const TimelineSize& size = {});

}  // namespace headroom
