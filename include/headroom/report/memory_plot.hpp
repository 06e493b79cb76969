// What a pipeline rank holds over one iteration, drawn below the schedule of `headroom estimate --timeline`: time from left to
// right in the same columns, bytes from bottom to top.
#pragma once

#include "headroom/answer/trace.hpp"
#include "headroom/report/timeline.hpp"

namespace headroom {

// The bottom is what the rank holds throughout, the top its peak; a column shows the most that it holds in its span of time.
// Within a pass memory is drawn as a straight line, since layers are saved and freed one after the other: a forward pass rises to
// what it leaves, a backward pass falls to it from its highest moment. `end` is where the last column ends. A line that says when
// the peak is reached follows.
std::string memory_plot(const Trace& trace, std::int64_t rank, Seconds end, const TimelineSize& size = {});

}  // namespace headroom
