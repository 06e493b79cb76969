// What every pipeline rank does and holds over one iteration: the question of `headroom trace`.
#pragma once

#include <string>
#include <vector>

#include "headroom/memory/step.hpp"
#include "headroom/plan/plan.hpp"

namespace headroom {

struct TraceQuestion {
  Request request;
};

// What a rank holds throughout, whatever the schedule.
struct ResidentMemory {
  Bytes state;  // weights, gradients and optimizer state
  Bytes reserved;
  friend bool operator==(const ResidentMemory&, const ResidentMemory&) = default;
};

// Work of a rank outside its passes (gradient reduction, optimizer step), or of a unit of divided weights within one.
struct TraceSpan {
  std::string name;
  std::int64_t rank = 0;
  Seconds start;
  Seconds end;
  bool collective = false;  // between data-parallel ranks, on a stream of its own
  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct Trace {
  std::vector<ReplayedStep> steps;                        // of all ranks, each rank's in order
  std::vector<std::vector<StepActivations>> activations;  // by rank, one for each of its steps
  std::vector<ResidentMemory> resident;                   // by rank
  std::vector<TraceSpan>
      spans;    // where passes gather weights or reduce gradients, also of each unit of each pass
  Seconds end;  // of the iteration: no earlier than anything above
};

struct TraceReply {
  Evaluation evaluation;
  Trace trace;
};

// The trace of a plan whose timing is known: its schedule, the memory of each rank, and after the pipeline the
// reduction of gradients and the optimizer's step.
Trace trace_of(const Plan& plan);

// What does not fit has a trace too. Throws InputError where the strategy is not legal or the system's performance not
// known.
TraceReply answer(const TraceQuestion& question);

}  // namespace headroom
