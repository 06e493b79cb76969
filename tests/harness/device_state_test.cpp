#include "harness/device_state.hpp"

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
}

TEST_CASE("device state: what the device tells") {
  const auto nvml = Nvml::open("0000:07:00.0", HEADROOM_FAKE_NVML);
  REQUIRE(nvml);
  CHECK(nvml->driver_version() == "580.95.05");
  CHECK(nvml->power_limit_watts() == 400);
  const auto reading = nvml->read();
  REQUIRE(reading);
  CHECK(reading->sm_clock_mhz <= 1410);
  CHECK(reading->sm_clock_mhz >= 1200);
  CHECK(reading->power_watts == 399.5);
  CHECK(reading->temperature_celsius == 61);
}

}  // namespace headroom::harness
