#include "headroom/plan/goodput.hpp"

#include <cmath>
#include <random>

#include <doctest/doctest.h>

namespace headroom {
namespace {

constexpr double hour = 3600;

Reliability of_llama_3() {
  // 419 unexpected interruptions in 54 days on 16384 GPUs (Llama 3, arXiv:2407.21783, section 3.3.4).
  return {.device_mtbf = Seconds(54 * 24 * hour * 16384 / 419),
          .checkpoint_time = Seconds(10),
          .restart_time = Seconds(300),
          .devices_per_node = 8};
}

// The part of the time that lasts, of a run that is played out failure by failure.
double played_out(const Reliability& reliability, Seconds interval, std::int64_t devices) {
  std::mt19937_64 random(20061022);
  const double mtbf = reliability.device_mtbf.count() / static_cast<double>(devices);
  std::exponential_distribution<double> gap(1 / mtbf);
  const double segment = interval.count() + reliability.checkpoint_time.count();
  double time = 0;
  double next_failure = gap(random);
  constexpr int segments = 200'000;
  for (int done = 0; done < segments;) {
    if (time + segment <= next_failure) {
      time += segment;
      ++done;
      continue;
    }
    // Back to the last checkpoint; a restart can fail too.
    double restarted = next_failure;
    do {
      time = restarted = next_failure;
      next_failure = time + gap(random);
      restarted += reliability.restart_time.count();
    } while (restarted > next_failure);
    time = restarted;
  }
  return segments * interval.count() / time;
}

TEST_CASE("goodput: what is expected is what a run that is played out does") {
  Reliability reliability = of_llama_3();
  for (const double factor : {0.02, 0.2, 1.0}) {
    reliability.device_mtbf = factor * of_llama_3().device_mtbf;
    const Goodput expected = goodput(reliability, 16384);
    CAPTURE(expected.productive);
    CHECK(played_out(reliability, expected.checkpoint_interval, 16384) ==
          doctest::Approx(expected.productive).epsilon(0.01));
  }
}

TEST_CASE("goodput: no other interval between checkpoints does better than the default") {
  Reliability reliability = of_llama_3();
  for (const double checkpoint : {1.0, 30.0, 300.0, 3000.0}) {
    reliability.checkpoint_time = Seconds(checkpoint);
    reliability.checkpoint_interval.reset();
    const Goodput best = goodput(reliability, 16384);
    for (double factor = 0.25; factor < 4; factor *= 1.1) {
      reliability.checkpoint_interval = factor * best.checkpoint_interval;
      // Daly's estimate is short of the optimum by less than a thousandth.
      CHECK(goodput(reliability, 16384).productive <= best.productive * 1.001);
    }
  }
}

TEST_CASE("goodput: Llama 3's failures, one every three hours, leave over 90% of the time") {
  const Goodput of_run = goodput(of_llama_3(), 16384);
  CHECK(of_run.mtbf.count() == doctest::Approx(54 * 24 * hour / 419));
  // The paper says as much of its run, and not how long checkpoints and restarts took: these are ours.
  CHECK(of_run.productive > 0.9);
  CHECK(of_run.productive < 0.96);
  CHECK(of_run.running == 1);
}

TEST_CASE("goodput: rare failures cost a checkpoint in each interval only") {
  const Reliability reliability{.device_mtbf = Seconds(1e15),
                                .checkpoint_time = Seconds(60),
                                .checkpoint_interval = Seconds(540),
                                .restart_time = Seconds(600)};
  CHECK(goodput(reliability, 8).productive == doctest::Approx(0.9));
}

TEST_CASE("goodput: the run waits while more nodes are away than there are spares") {
  Reliability reliability = of_llama_3();
  reliability.repair_time = Seconds(24 * hour);
  const double away = 24 * hour / goodput(reliability, 16384).mtbf.count();  // 7.8 nodes
  CHECK(goodput(reliability, 16384).running == doctest::Approx(std::exp(-away)));
  reliability.spares = 8;  // one node
  CHECK(goodput(reliability, 16384).running == doctest::Approx(std::exp(-away) * (1 + away)));
  reliability.spares = 40 * 8;
  const Goodput enough = goodput(reliability, 16384);
  CHECK(enough.running == doctest::Approx(1));
  CHECK(enough.productive == doctest::Approx(goodput(of_llama_3(), 16384).productive));
}

}  // namespace
}  // namespace headroom
