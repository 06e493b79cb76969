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
constexpr int pass_windows = 20;
constexpr std::size_t least_windows = 5;  // of a sample that Ctrl-C cut short
constexpr double window_seconds = 0.5e-3;
constexpr int most_launches = 200;
constexpr int least_launches_together = 5;
constexpr auto pause = std::chrono::milliseconds(20);

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
  template <class Run>
  double seconds_of(Run run) {
    start();
    run();
    stop();
    return seconds();
  }

 private:
  cudaStream_t stream_;
  Event from_;
  Event to_;
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
  return watch.seconds_of(run) / few;
}

std::optional<Timing> timing_if_enough(std::vector<double> seconds, std::size_t windows) {
  if (seconds.size() < std::min(windows, least_windows)) return std::nullopt;
  return timing_of(std::move(seconds));
}

}  // namespace

std::optional<Timing> time_graph(cudaStream_t stream, const Work& work, Load load) {
  Stopwatch watch(stream);
  const int launches = launches_for(first_estimate(stream, work, watch));
  const GraphExec graph = recorded(stream, work, launches);
  const auto window = [&] { check(cudaGraphLaunch(graph.get(), stream)); };
  const bool burst = load == Load::burst;
  if (burst) {
    watch.seconds_of(window);
    std::this_thread::sleep_for(pause);
  } else {
    for (double loaded = 0; loaded < seconds_of_load && !interrupted();) loaded += watch.seconds_of(window);
    if (interrupted()) return std::nullopt;  // the clock has not settled
  }
  const std::size_t windows = burst ? burst_windows : sustained_windows;
  std::vector<double> seconds;
  while (seconds.size() < windows && !interrupted()) seconds.push_back(watch.seconds_of(window) / launches);
  return timing_if_enough(std::move(seconds), windows);
}

std::optional<Timing> time_together(cudaStream_t stream, const Work& work, const Together& together) {
  Stopwatch watch(stream);
  const auto timed = [&](int launches) {
    work(stream);  // ends on all ranks at about the same time
    watch.start();
    for (int i = 0; i < launches; ++i) work(stream);
    watch.stop();
    together.finish();
    return watch.seconds() / launches;
  };
  timed(least_launches_together);
  const int launches =
      together.agree(std::max(least_launches_together, launches_for(timed(least_launches_together))));
  std::vector<double> seconds;
  while (seconds.size() < burst_windows && together.agree(interrupted() ? 1 : 0) == 0)
    seconds.push_back(timed(launches));
  return timing_if_enough(std::move(seconds), burst_windows);
}

std::optional<PassTimings> time_passes(cudaStream_t stream, const Passes& passes, const Together& together) {
  // Pairs are queued without waiting, so that the device does not wait for the host.
  constexpr int queued = 4;
  std::vector<Stopwatch> forward;
  std::vector<Stopwatch> backward;
  for (int i = 0; i < queued; ++i) {
    forward.emplace_back(stream);
    backward.emplace_back(stream);
  }
  std::vector<double> forward_seconds;
  std::vector<double> backward_seconds;
  const auto run = [&] {
    for (std::size_t i = 0; i < queued; ++i) {
      passes.prepare(stream);
      forward[i].start();
      passes.forward(stream);
      forward[i].stop();
      backward[i].start();
      passes.backward(stream);
      backward[i].stop();
    }
    together.finish();
    double sum = 0;
    for (std::size_t i = 0; i < queued; ++i) {
      forward_seconds.push_back(forward[i].seconds());
      backward_seconds.push_back(backward[i].seconds());
      sum += forward_seconds.back() + backward_seconds.back();
    }
    return sum;
  };
  const auto stop = [&] { return together.agree(interrupted() ? 1 : 0) != 0; };
  run();
  // All ranks load the device for as many rounds.
  const int rounds = together.agree(static_cast<int>(seconds_of_load / std::max(run(), 1e-4)) + 1);
  for (int i = 0; i < rounds; ++i) {
    if (stop()) return std::nullopt;
    run();
  }
  forward_seconds.clear();
  backward_seconds.clear();
  while (forward_seconds.size() < pass_windows && !stop()) run();
  const auto of = [](std::vector<double>& seconds) {
    return timing_if_enough(std::move(seconds), pass_windows);
  };
  const std::optional<Timing> first = of(forward_seconds);
  const std::optional<Timing> second = of(backward_seconds);
  if (!first || !second) return std::nullopt;
  return PassTimings{*first, *second};
}

Together alone(cudaStream_t stream) {
  return {.agree = [](int number) { return number; },
          .finish = [stream] { check(cudaStreamSynchronize(stream)); }};
}

}  // namespace headroom::harness
