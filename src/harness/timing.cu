#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "resources.cuh"
#include "timing.cuh"

namespace headroom::harness {
namespace {

constexpr int windows = 15;
constexpr double window_seconds = 0.5e-3;
constexpr int most_launches = 200;
constexpr auto pause = std::chrono::milliseconds(20);

Timing timing_of(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double q) {
    return seconds[static_cast<std::size_t>(q * double(seconds.size() - 1) + 0.5)];
  };
  return {at(0.5), 0.5 * (at(0.75) - at(0.25)) / at(0.5)};
}

class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream), from_(make_event()), to_(make_event()) {}
  template <class Run>
  double seconds(Run run) {
    check(cudaEventRecord(from_.get(), stream_));
    run();
    check(cudaEventRecord(to_.get(), stream_));
    check(cudaEventSynchronize(to_.get()));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, from_.get(), to_.get()));
    return milliseconds * 1e-3;
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
  for (int i = 0; i < 3; ++i) work(stream);
  return watch.seconds([&] {
    for (int i = 0; i < 3; ++i) work(stream);
  }) / 3;
}

}  // namespace

Timing time_burst(cudaStream_t stream, const Work& work) {
  Stopwatch watch(stream);
  const int launches = launches_for(first_estimate(stream, work, watch));
  const GraphExec graph = recorded(stream, work, launches);
  check(cudaGraphLaunch(graph.get(), stream));
  check(cudaStreamSynchronize(stream));
  std::this_thread::sleep_for(pause);
  std::vector<double> seconds;
  for (int i = 0; i < windows; ++i) {
    seconds.push_back(watch.seconds([&] { check(cudaGraphLaunch(graph.get(), stream)); }) / launches);
  }
  return timing_of(std::move(seconds));
}

Timing time_sustained(cudaStream_t stream, const Work& work, double seconds_of_load) {
  Stopwatch watch(stream);
  const int launches = launches_for(first_estimate(stream, work, watch));
  const GraphExec graph = recorded(stream, work, launches);
  const auto window = [&] { check(cudaGraphLaunch(graph.get(), stream)); };
  for (double loaded = 0; loaded < seconds_of_load;) loaded += watch.seconds(window);
  std::vector<double> seconds;
  for (int i = 0; i < 4 * windows; ++i) seconds.push_back(watch.seconds(window) / launches);
  return timing_of(std::move(seconds));
}

Timing time_launches(cudaStream_t stream, const std::function<void()>& work,
                     const std::function<void()>& finish) {
  Stopwatch watch(stream);
  const auto timed = [&](int launches) {
    const double seconds = watch.seconds([&] {
      for (int i = 0; i < launches; ++i) work();
    });
    finish();
    return seconds / launches;
  };
  timed(5);
  const int launches = std::max(5, launches_for(timed(5)));
  std::vector<double> seconds;
  for (int i = 0; i < windows; ++i) seconds.push_back(timed(launches));
  return timing_of(std::move(seconds));
}

}  // namespace headroom::harness
