#include "headroom/plan/capacity.hpp"

#include <doctest/doctest.h>

#include "headroom/core/error.hpp"
#include "headroom/io/system_file.hpp"

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
  const Seconds iteration = iteration_by(training, workload, 1, deadline);
  CHECK(training_cost(training, workload, iteration, 1).days == doctest::Approx(30));
}

TEST_CASE("capacity: failures make a run longer, spares make it dearer, and a deadline counts both") {
  const Training smooth{.tokens = 300e9, .price_per_device_hour = 2, .device_watts = 1000};
  Training failing = smooth;
  failing.reliability = Reliability{.device_mtbf = Seconds(50000 * 3600.0),
                                    .checkpoint_time = Seconds(60),
                                    .restart_time = Seconds(600),
                                    .spares = 8,
                                    .repair_time = Seconds(3600),
                                    .devices_per_node = 8};
  const TrainingCost before = training_cost(smooth, workload, Seconds(5.76), 1024);
  const TrainingCost after = training_cost(failing, workload, Seconds(5.76), 1024);
  REQUIRE(after.goodput);
  CHECK(*after.goodput == goodput(*failing.reliability, 1024));
  CHECK(after.days == doctest::Approx(before.days / after.goodput->productive));
  CHECK(after.device_hours == doctest::Approx(24 * after.days * (1024 + 8)));
  CHECK(*after.price == doctest::Approx(2 * after.device_hours));
  CHECK(*after.kilowatt_hours == doctest::Approx(24 * after.days * 1024));
  CHECK(after.failures == doctest::Approx(after.days * 24 * 1024 / 50000));
  const Seconds deadline(30 * 86400.0);
  const Seconds iteration = iteration_by(failing, workload, 1024, deadline);
  CHECK(training_cost(failing, workload, iteration, 1024).days == doctest::Approx(30));
}

TEST_CASE("capacity: what never ends is refused") {
  Training hopeless{.tokens = 300e9};
  hopeless.reliability =
      Reliability{.device_mtbf = Seconds(3600), .checkpoint_time = Seconds(60), .restart_time = Seconds(600)};
  CHECK_THROWS_AS(training_cost(hopeless, workload, Seconds(5.76), 1024), InputError);
}

TEST_CASE("capacity: power is that of the data sheet where nobody says another") {
  const System system = read_system("dgx-h100-80g");
  const Training by_default = training_on({.tokens = 1e9}, system);
  CHECK(*by_default.device_watts == 700);
  CHECK(by_default.watts_of_data_sheet);
  const Training given = training_on({.tokens = 1e9, .device_watts = 500}, system);
  CHECK(*given.device_watts == 500);
  CHECK(!given.watts_of_data_sheet);
  for (const System& one : list_systems()) {
    CAPTURE(one.name);
    REQUIRE(one.tdp);
    CHECK(one.tdp->value >= Watts(72));
    CHECK(!one.tdp->source.empty());
  }
}

}  // namespace headroom
