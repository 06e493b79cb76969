#include "headroom/plan/capacity.hpp"

#include <doctest/doctest.h>

namespace headroom {

constexpr Workload workload{.global_batch = 1000, .sequence = 2000};

TEST_CASE("capacity: whole iterations of a batch until all tokens are seen") {
  CHECK(iterations_of({.tokens = 300e9}, workload) == 150'000);
  CHECK(iterations_of({.tokens = 300e9 + 1}, workload) == 150'001);
  CHECK(iterations_of({.tokens = 1}, workload) == 1);
}

TEST_CASE("capacity: days, device-hours, price and energy") {
  const Training training{.tokens = 300e9, .price_per_device_hour = 2.5, .device_watts = 400};
  const TrainingCost cost = training_cost(training, workload, Seconds(5.76), 64);
  CHECK(cost.days == doctest::Approx(10));
  CHECK(cost.device_hours == doctest::Approx(64 * 240));
  CHECK(*cost.price == doctest::Approx(2.5 * 64 * 240));
  CHECK(*cost.kilowatt_hours == doctest::Approx(0.4 * 64 * 240));
  const TrainingCost bare = training_cost({.tokens = 300e9}, workload, Seconds(5.76), 64);
  CHECK(!bare.price);
  CHECK(!bare.kilowatt_hours);
}

TEST_CASE("capacity: the ends of an interval are what iterations of that time take") {
  const Training training{.tokens = 300e9, .price_per_device_hour = 2.5};
  const auto at = [&](double seconds) { return training_cost(training, workload, Seconds(seconds), 64); };
  const TrainingInterval cost =
      training_interval(training, workload, Seconds(6), {.low = Seconds(5), .high = Seconds(7.2)}, 64);
  CHECK(cost.predicted == at(6));
  CHECK(cost.low == at(5));
  CHECK(cost.high == at(7.2));
}

TEST_CASE("capacity: iterations that take what a deadline leaves them end at it") {
  const Training training{.tokens = 1e12 + 7};
  const Seconds deadline(30 * 86400.0);
  const Seconds iteration = iteration_by(training, workload, deadline);
  CHECK(training_cost(training, workload, iteration, 1).days == doctest::Approx(30));
}

}  // namespace headroom
