// The report of `headroom trace`: a replayed schedule for chrome://tracing and ui.perfetto.dev, as a process
// "pipeline" with a track for each pipeline rank (forward, recompute, backward, transfer) and a counter of its memory.
// [Trace Event Format, Google, 2016]
#pragma once

#include <functional>
#include <string>

#include "headroom/answer/trace.hpp"

namespace headroom {

// Times are in microseconds from the start of the iteration. The counter is state + activations + reserved, in GiB:
// it rises when a forward pass ends, stands at the step's highest while a backward pass recomputes (or, if recomputing
// takes no time, until it ends), and falls when the backward pass ends. So its maximum is the rank's peak exactly;
// its last value stands at the iteration's end.
//
// Up to 5 spans and 4 values of the counter a microbatch, virtual stage and rank, about 1 kB: 34 MB for p = 64 and
// n = 512. The text goes to `write` in order, in parts of about 64 KiB.
void chrome_trace(const TraceStream& trace, const std::function<void(const std::string& text)>& write);

}  // namespace headroom
