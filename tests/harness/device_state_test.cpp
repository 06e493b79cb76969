#include "harness/device_state.hpp"

#include <chrono>
#include <thread>

#include <doctest/doctest.h>
namespace headroom::harness {

TEST_CASE("device state: median and extremes of the readings") {
  CHECK_FALSE(state_of({}));
  const auto state = state_of({{1400, 300, 50}, {1200, 390, 60}, {1300, 400, 55}});
  REQUIRE(state);
  CHECK(state->sm_clock_mhz == 1300);
  CHECK(state->least_sm_clock_mhz == 1200);
  CHECK(state->power_watts == 390);
  CHECK(state->temperature_celsius == 60);
}

TEST_CASE("device state: without NVML, without the device, without its functions") {
  CHECK(Nvml::open("0000:07:00.0", "no_such_library.so") == nullptr);
  CHECK(Nvml::open("0000:ff:00.0", HEADROOM_FAKE_NVML) == nullptr);
  CHECK(Nvml::open("0000:07:00.0", "libc.so.6") == nullptr);
  StateSampler nothing(nullptr);
  CHECK_FALSE(nothing.finish());
}

TEST_CASE("device state: is read while a sample runs") {
  const auto nvml = Nvml::open("0000:07:00.0", HEADROOM_FAKE_NVML);
  REQUIRE(nvml);
  CHECK(nvml->driver_version() == "580.95.05");
  CHECK(nvml->power_limit_watts() == 400);
  StateSampler sampler(nvml.get());
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto state = sampler.finish();
  REQUIRE(state);
  CHECK(state->sm_clock_mhz <= 1410);
  CHECK(state->least_sm_clock_mhz <= state->sm_clock_mhz);
  CHECK(state->least_sm_clock_mhz >= 1200);
  CHECK(state->power_watts == 399.5);
  CHECK(state->temperature_celsius == 61);
}

}  // namespace headroom::harness
