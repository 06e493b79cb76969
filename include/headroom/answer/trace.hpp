// Question of `headroom trace`: the work and the memory of every pipeline rank over one iteration.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headroom/memory/held.hpp"
#include "headroom/plan/plan.hpp"
#include "headroom/schedule/times.hpp"

namespace headroom {

struct TraceQuestion {
  Request request;
};

// Memory that a rank holds during the whole iteration, whatever the schedule.
struct ResidentMemory {
  Bytes state;  // weights, gradients and optimizer state
  Bytes reserved;
  friend bool operator==(const ResidentMemory&, const ResidentMemory&) = default;
};

// Work of a rank outside its passes (gradient reduction, optimizer step), or communication of a unit of
// sharded weights within a pass.
struct TraceSpan {
  std::string name;
  std::int64_t rank = 0;
  Seconds start;
  Seconds end;
  bool collective = false;  // between data-parallel ranks, on its own stream
  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

struct Trace {
  std::vector<ReplayedStep> steps;                        // of all ranks, in order for each rank
  std::vector<std::vector<StepActivations>> activations;  // by rank, one for each of its steps
  std::vector<ResidentMemory> resident;                   // by rank
  std::vector<TraceSpan>
      spans;    // if passes gather weights or reduce gradients, includes each unit of each pass
  Seconds end;  // end of the iteration: no earlier than any step or span
};

// Activations of a rank at a step's peak and after the step.
struct StepBytes {
  Bytes highest;
  Bytes after;
  friend bool operator==(const StepBytes&, const StepBytes&) = default;
};

// A trace passed on while it is made, since the whole may exceed memory.
struct TraceStream {
  using TakeStep = std::function<void(const ReplayedStep&, const StepBytes&)>;
  using TakeSpan = std::function<void(const TraceSpan&)>;

  std::vector<ResidentMemory> resident;  // by rank
  Seconds end;
  bool beside = false;                               // whether passes overlap others
  bool collectives = false;                          // whether spans are collectives
  std::function<void(const TakeStep&)> visit_steps;  // in the order of Trace::steps
  std::function<void(const TakeSpan&)> visit_spans;
};

struct TraceReply {
  Evaluation evaluation;
  TraceStream trace;
};

// Largest number of steps of all ranks in a trace: 7 GB of text, more than viewers open.
inline constexpr std::int64_t most_trace_steps = std::int64_t{1} << 24;
// Largest number of steps in a trace that is held in memory to be drawn.
inline constexpr std::int64_t most_drawn_steps = std::int64_t{1} << 20;

// Returns the steps of all ranks in an iteration of the plan.
std::int64_t trace_steps(const Plan& plan);

// Return the trace of a plan whose timing is known: its schedule, the memory of each rank and, after the
// pipeline, the gradient reduction and the optimizer step.
TraceStream trace_stream(const Plan& plan);
Trace trace_of(const Plan& plan);

// Streams a trace from memory. Keeps a reference.
TraceStream streamed(const Trace& trace);

// Traces the request's strategy, also if it does not fit. Throws InputError if the strategy is not legal, the
// system's performance is not known, or the trace is too long.
TraceReply answer(const TraceQuestion& question);

}  // namespace headroom
