// What the device's clocks, power and temperature are while a sample runs, and the driver's version: NVML, which comes
// with the driver and is opened when there is one. Without it samples carry no state, and nothing else changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headroom::harness {

// Of the readings during one sample. 0: not known.
struct DeviceState {
  double sm_clock_mhz = 0;  // median
  double least_sm_clock_mhz = 0;
  double power_watts = 0;          // median
  double temperature_celsius = 0;  // most
};

struct Reading {
  double sm_clock_mhz, power_watts, temperature_celsius;
};
std::optional<DeviceState> state_of(const std::vector<Reading>& readings);  // nothing of none

// The library, and one device of it. Empty answers where a device does not tell.
class Nvml {
 public:
  // Nothing where the library or the device is not there. `bus_id` as cudaDeviceGetPCIBusId gives it.
  static std::unique_ptr<Nvml> open(const std::string& bus_id, const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::string driver_version() const;  // "580.95.05"
  [[nodiscard]] std::optional<double> power_limit_watts() const;
  [[nodiscard]] std::optional<Reading> read() const;

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);
  void* library_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace headroom::harness
