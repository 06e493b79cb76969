// The report of `headroom trace`: a replayed schedule for chrome://tracing and ui.perfetto.dev, as a process
// "pipeline" with a track for each pipeline rank (forward, replay, backward, transfer) and a counter of its memory.
// [Trace Event Format, Google, 2016]
#pragma once

#include <string>
#include <vector>

#include "headroom/memory/step.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

// What a rank holds throughout, whatever the schedule.
struct ResidentMemory {
  Bytes state;  // weights, gradients and optimizer state
  Bytes reserved;
  friend bool operator==(const ResidentMemory&, const ResidentMemory&) = default;
};

// Work of a rank outside its passes: gradient reduction, optimizer step.
struct TraceSpan {
  std::string name;
  std::int64_t rank = 0;
  Seconds start;
  Seconds end;
  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct Trace {
  std::vector<ReplayedStep> steps;                        // of all ranks, each rank's in order
  std::vector<std::vector<StepActivations>> activations;  // by rank, one for each of its steps
  std::vector<ResidentMemory> resident;                   // by rank
  std::vector<TraceSpan> spans;
  Seconds end;  // of the iteration: no earlier than anything above
};

// The trace of a plan whose timing is known: its schedule, the memory of each rank, and after the pipeline the
// reduction of gradients and the optimizer's step.
Trace trace_of(const Plan& plan);

// Times are in microseconds from the start of the iteration. The counter is state + activations + reserved, in GiB:
// it rises when a forward pass ends, stands at the step's highest while a backward pass replays (or, if replaying
// takes no time, until it ends), and falls when the backward pass ends. So its maximum is the rank's peak exactly;
// its last value stands at the iteration's end.
//
// Up to 5 spans and 4 values of the counter a microbatch, stage chunk and rank, about 1 kB: 34 MB for p = 64 and
// n = 512, all in the one string.
std::string chrome_trace(const Trace& trace);

}  // namespace headroom
