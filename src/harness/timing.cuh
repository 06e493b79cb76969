// How long something that a stream runs takes: warm-up, repeats, median and spread. Nothing where Ctrl-C came before
// enough repeats; with enough of them, those that were timed count.
#pragma once

#include <functional>
#include <optional>

#include <cuda_runtime.h>

#include "device_state.hpp"
#include "report.hpp"

namespace headroom::harness {

using Work = std::function<void(cudaStream_t)>;

// Before a first sustained window is timed: long enough for the power limit to act, which takes tenths of a second.
inline constexpr double seconds_of_load = 2;

// And what the device was like while the windows that were timed ran; `nvml` may be null. Of bursts without the power.
struct Timed {
  Timing timing;
  std::optional<DeviceState> state;
};

// A burst: some windows of as many launches as fill half a millisecond, recorded as a graph so that the host does not
// hold the device back, each after a pause that lets the clock rise and one such graph that is not timed. Sustained:
// the same without pauses, under a load that has lasted seconds_of_load and never lets the device idle.
std::optional<Timed> time_graph(cudaStream_t stream, const Work& work, Load load, const Nvml* nvml);

// A burst without a graph: each launch costs what it costs in training without graphs, where short kernels follow each
// other as fast as the host launches them.
std::optional<Timed> time_launches(cudaStream_t stream, const Work& work, const Nvml* nvml);

// Of collectives, without a graph: the time from the end of one launch to the end of the last of some more. `agree`
// takes this rank's number and gives the largest of all ranks, so that all launch as often and stop together; `finish`
// waits for the stream.
struct Together {
  std::function<int(int)> agree;
  std::function<void()> finish;
};
std::optional<Timed> time_together(cudaStream_t stream, const Work& work, const Together& together,
                                   const Nvml* nvml);

}  // namespace headroom::harness
