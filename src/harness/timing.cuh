// How long something that a stream runs takes: warm-up, repeats, median and spread. Nothing where Ctrl-C came before
// enough repeats; with enough of them, those that were timed count.
#pragma once

#include <functional>
#include <optional>

#include <cuda_runtime.h>

#include "report.hpp"

namespace headroom::harness {

using Work = std::function<void(cudaStream_t)>;

// Before a first sustained window is timed: long enough for the power limit to act, which takes tenths of a second.
inline constexpr double seconds_of_load = 2;

// A burst: some windows of as many launches as fill half a millisecond, recorded as a graph so that the host does not
// hold the device back, after a pause that lets the clock rise. Sustained: the same without a pause, under a load that
// has lasted seconds_of_load.
std::optional<Timing> time_graph(cudaStream_t stream, const Work& work, Load load);

// Of collectives, without a graph: the time from the end of one launch to the end of the last of some more. `agree`
// takes this rank's number and gives the largest of all ranks, so that all launch as often and stop together; `finish`
// waits for the stream.
struct Together {
  std::function<int(int)> agree;
  std::function<void()> finish;
};
std::optional<Timing> time_together(cudaStream_t stream, const Work& work, const Together& together);

// Of two passes that follow each other, without a graph, under a load that has lasted seconds_of_load: `prepare` runs
// before each pair and is not timed.
struct Passes {
  Work prepare, forward, backward;
};
struct PassTimings {
  Timing forward, backward;
};
std::optional<PassTimings> time_passes(cudaStream_t stream, const Passes& passes, const Together& together);

// Where a rank is alone.
Together alone(cudaStream_t stream);

}  // namespace headroom::harness
