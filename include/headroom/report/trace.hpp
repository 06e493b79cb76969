// Report of `headroom trace`: a replayed schedule for chrome://tracing and ui.perfetto.dev. The process
// "pipeline" has a track for each pipeline rank (forward, recompute, backward, transfer) and a counter of the
// rank's memory. [Trace Event Format, Google, 2016]
#pragma once

#include <functional>
#include <string>

#include "headroom/answer/trace.hpp"

namespace headroom {

// Writes the trace. Times are in microseconds from the start of the iteration. The counter is state +
// activations + non-torch memory, in GiB. The counter rises when a forward pass ends and falls when a
// backward pass ends. It stays at the step's maximum while a backward pass recomputes or, if recomputing
// takes no time, until the pass ends. The counter's maximum is exactly the rank's peak; its last value stands
// at the iteration's end.
//
// Each microbatch, virtual stage and rank takes up to 5 spans and 4 counter values, about 1 kB: 34 MB for p =
// 64 and n = 512. The text goes to `write` in order, in parts of about 64 KiB.
void chrome_trace(const TraceStream& trace, const std::function<void(const std::string& text)>& write);

}  // namespace headroom
