// Plot of a pipeline rank's memory over one iteration, below the schedule of `headroom estimate --timeline`.
// Time runs from left to right in the schedule's columns, bytes from bottom to top.
#pragma once

#include "headroom/answer/trace.hpp"
#include "headroom/report/timeline.hpp"

namespace headroom {

// Draws the plot of `rank`. The bottom is what the rank holds throughout, the top its peak. A column shows
// the maximum within its time span. Memory within a pass is a straight line, since layers are saved and freed
// one after another. A forward pass rises to the memory that it leaves; a backward pass falls from its
// maximum to the memory that it leaves. `end` is where the last column ends. A line below the plot says when
// the peak is reached.
std::string memory_plot(const Trace& trace, std::int64_t rank, Seconds end, const TimelineSize& size = {});

}  // namespace headroom
