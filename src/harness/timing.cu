#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "interrupt.hpp"
#include "resources.cuh"
#include "timing.cuh"

namespace headroom::harness {
namespace {

constexpr int burst_windows = 15;
constexpr int sustained_windows = 60;
constexpr std::size_t least_windows = 5;  // of a sample that Ctrl-C cut short
constexpr double window_seconds = 0.5e-3;
constexpr int most_launches = 200;
constexpr int least_launches_together = 5;
constexpr auto pause = std::chrono::milliseconds(20);
constexpr auto between_readings = std::chrono::milliseconds(2);

double seconds_between(const Event& from, const Event& to) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, from.get(), to.get()));
  return milliseconds * 1e-3;
}

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream), from_(make_event()), to_(make_event()) {}
  void start() { check(cudaEventRecord(from_.get(), stream_)); }
  void stop() { check(cudaEventRecord(to_.get(), stream_)); }
  // Once the stream has come to the stop.
  [[nodiscard]] double seconds() const {
    check(cudaEventSynchronize(to_.get()));
    return seconds_between(from_, to_);
  }
  [[nodiscard]] bool running() const {
    const cudaError_t status = cudaEventQuery(to_.get());
    if (status != cudaErrorNotReady) check(status);
    return status == cudaErrorNotReady;
  }
  // Queued, not waited for.
  void time(const std::function<void()>& run) {
    start();
    run();
    stop();
  }

 private:
  cudaStream_t stream_;
  Event from_;
  Event to_;
};

// What NVML tells while the device runs what is timed, and only then: a clock read in a pause is another one.
class Readings {
 public:
  explicit Readings(const Nvml* nvml) : nvml_(nvml) {}
  void read() {
    if (const auto reading = nvml_ == nullptr ? std::nullopt : nvml_->read()) readings_.push_back(*reading);
  }
  void read_until(const Stopwatch& last) {
    while (nvml_ != nullptr && last.running()) {
      read();
      std::this_thread::sleep_for(between_readings);
    }
  }
  // A burst is over long before NVML's power, which is averaged over up to a second, shows it.
  [[nodiscard]] std::optional<DeviceState> state(Load load) const {
    std::optional<DeviceState> state = state_of(readings_);
    if (state && load == Load::burst) state->power_watts = 0;
    return state;
  }

 private:
  const Nvml* nvml_;
  std::vector<Reading> readings_;
};

int launches_for(double seconds_each) {
  return std::clamp(static_cast<int>(window_seconds / std::max(seconds_each, 1e-7)), 1, most_launches);
}

GraphExec recorded(cudaStream_t stream, const Work& work, int launches) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < launches; ++i) work(stream);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(stream, &captured));
  const Graph graph(captured);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0));
  return GraphExec(executable);
}

// Warmed up: libraries load their kernels at the first launch.
double first_estimate(cudaStream_t stream, const Work& work, Stopwatch& watch) {
  constexpr int few = 3;
  const auto run = [&] {
    for (int i = 0; i < few; ++i) work(stream);
  };
  run();
  watch.time(run);
  return watch.seconds() / few;
}

std::optional<Timing> timing_if_enough(std::vector<double> seconds, std::size_t windows) {
  if (seconds.size() < std::min(windows, least_windows)) return std::nullopt;
  return timing_of(std::move(seconds));
}

// Before each window a pause lets the clock rise, and what is not timed lets the host get ahead: on an idle device the
// time between two events holds the latency of launching what is between them.
std::optional<Timing> burst_timing(Stopwatch& watch, const std::function<void()>& window, int launches,
                                   Readings& readings) {
  std::vector<double> seconds;
  while (seconds.size() < burst_windows && !interrupted()) {
    std::this_thread::sleep_for(pause);
    window();
    watch.time(window);
    readings.read_until(watch);
    seconds.push_back(watch.seconds() / launches);
  }
  return timing_if_enough(std::move(seconds), burst_windows);
}

// The device is never idle: some windows are always queued while an earlier one is waited for, and those that count
// follow without a wait between them.
std::optional<Timing> sustained_timing(cudaStream_t stream, const std::function<void()>& window, int launches,
                                       Readings& readings) {
  constexpr std::size_t ahead = 4;
  std::vector<Stopwatch> watches;
  for (int i = 0; i < sustained_windows; ++i) watches.emplace_back(stream);
  for (std::size_t i = 0; i < ahead; ++i) watches[i].time(window);
  double loaded = 0;
  for (std::size_t i = 0; loaded < seconds_of_load && !interrupted(); i = (i + 1) % ahead) {
    loaded += watches[i].seconds();
    watches[i].time(window);
  }
  if (interrupted()) return std::nullopt;  // the clock has not settled
  for (Stopwatch& watch : watches) watch.time(window);
  readings.read_until(watches.back());
  std::vector<double> seconds;
  for (const Stopwatch& watch : watches) seconds.push_back(watch.seconds() / launches);
  return timing_of(std::move(seconds));
}

std::optional<Timed> with_state(const std::optional<Timing>& timing, const Readings& readings, Load load) {
  if (!timing) return std::nullopt;
  return Timed{*timing, readings.state(load)};
}

}  // namespace

std::optional<Timed> time_graph(cudaStream_t stream, const Work& work, Load load, const Nvml* nvml) {
  Stopwatch watch(stream);
  const int launches = launches_for(first_estimate(stream, work, watch));
  const GraphExec graph = recorded(stream, work, launches);
  const auto window = [&] { check(cudaGraphLaunch(graph.get(), stream)); };
  Readings readings(nvml);
  const auto timing = load == Load::burst ? burst_timing(watch, window, launches, readings)
                                          : sustained_timing(stream, window, launches, readings);
  // What was queued is done before the graph goes.
  check(cudaStreamSynchronize(stream));
  return with_state(timing, readings, load);
}

std::optional<Timed> time_launches(cudaStream_t stream, const Work& work, const Nvml* nvml) {
  Stopwatch watch(stream);
  const int launches = launches_for(first_estimate(stream, work, watch));
  const auto window = [&] {
    for (int i = 0; i < launches; ++i) work(stream);
  };
  Readings readings(nvml);
  const auto timing = burst_timing(watch, window, launches, readings);
  return with_state(timing, readings, Load::burst);
}

std::optional<Timed> time_together(cudaStream_t stream, const Work& work, const Together& together,
                                   const Nvml* nvml) {
  Stopwatch watch(stream);
  Readings readings(nvml);
  const auto timed = [&](int launches, bool counts) {
    work(stream);  // ends on all ranks at about the same time
    watch.start();
    for (int i = 0; i < launches; ++i) work(stream);
    watch.stop();
    if (counts) readings.read();
    together.finish();
    return watch.seconds() / launches;
  };
  timed(least_launches_together, false);
  const int launches =
      together.agree(std::max(least_launches_together, launches_for(timed(least_launches_together, false))));
  std::vector<double> seconds;
  while (seconds.size() < burst_windows && together.agree(interrupted() ? 1 : 0) == 0)
    seconds.push_back(timed(launches, true));
  return with_state(timing_if_enough(std::move(seconds), burst_windows), readings, Load::burst);
}

}  // namespace headroom::harness
