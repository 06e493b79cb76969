// What every pipeline rank does and holds over one iteration: the question of `headroom trace`.
#pragma once

#include <cstdint>
#include <functional>
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

// Activations of a rank at a step's highest moment, and after it.
struct StepBytes {
  Bytes highest;
  Bytes after;
  friend bool operator==(const StepBytes&, const StepBytes&) = default;
};

// A trace that is passed on while it is made, since the whole may be larger than memory.
struct TraceStream {
  using TakeStep = std::function<void(const ReplayedStep&, const StepBytes&)>;
  using TakeSpan = std::function<void(const TraceSpan&)>;

  std::vector<ResidentMemory> resident;  // by rank
  Seconds end;
  bool beside = false;                               // whether passes run beside others
  bool collectives = false;                          // whether spans are collectives
  std::function<void(const TakeStep&)> visit_steps;  // in the order of Trace::steps
  std::function<void(const TakeSpan&)> visit_spans;
};

struct TraceReply {
  Evaluation evaluation;
  TraceStream trace;
};

// Steps of all ranks that a trace may have: 7 GB of text. More than viewers open.
inline constexpr std::int64_t most_trace_steps = std::int64_t{1} << 24;
// And one that is held, to be drawn.
inline constexpr std::int64_t most_drawn_steps = std::int64_t{1} << 20;

// Steps of all ranks in an iteration of the plan.
std::int64_t trace_steps(const Plan& plan);

// The trace of a plan whose timing is known: its schedule, the memory of each rank, and after the pipeline the
// reduction of gradients and the optimizer's step.
TraceStream trace_stream(const Plan& plan);
Trace trace_of(const Plan& plan);

// A trace that is held. Keeps a reference.
TraceStream streamed(const Trace& trace);

// What does not fit has a trace too. Throws InputError where the strategy is not legal, the system's performance not
// known, or the trace too long.
TraceReply answer(const TraceQuestion& question);

}  // namespace headroom
