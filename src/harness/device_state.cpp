#include "device_state.hpp"

#include <algorithm>
#include <array>

#include <dlfcn.h>

namespace headroom::harness {
namespace {

// From NVML's reference manual, which promises that these stay as they are.
constexpr int success = 0;             // NVML_SUCCESS
constexpr int sm_clock = 1;            // NVML_CLOCK_SM
constexpr int gpu_temperature = 0;     // NVML_TEMPERATURE_GPU
constexpr unsigned version_size = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

struct Nvml::Functions {
  using Device = void*;
  int (*init)();
  int (*shutdown)();
  int (*driver_version)(char*, unsigned);
  int (*device_by_bus_id)(const char*, Device*);
  int (*clock)(Device, int, unsigned*);
  int (*power)(Device, unsigned*);        // milliwatts
  int (*power_limit)(Device, unsigned*);  // milliwatts
  int (*temperature)(Device, int, unsigned*);
  Device device;

  bool find_all(void* library) {
    const auto find = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find("nvmlInit_v2", init) && find("nvmlShutdown", shutdown) &&
           find("nvmlSystemGetDriverVersion", driver_version) &&
           find("nvmlDeviceGetHandleByPciBusId_v2", device_by_bus_id) &&
           find("nvmlDeviceGetClockInfo", clock) && find("nvmlDeviceGetPowerUsage", power) &&
           find("nvmlDeviceGetEnforcedPowerLimit", power_limit) &&
           find("nvmlDeviceGetTemperature", temperature);
  }
};

std::unique_ptr<Nvml> Nvml::open(const std::string& bus_id, const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->find_all(handle) || functions->init() != success) {
    dlclose(handle);
    return nullptr;
  }
  if (functions->device_by_bus_id(bus_id.c_str(), &functions->device) != success) {
    functions->shutdown();
    dlclose(handle);
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(handle, std::move(functions)));
}

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions)
    : library_(library), functions_(std::move(functions)) {}

Nvml::~Nvml() {
  functions_->shutdown();
  dlclose(library_);
}

std::string Nvml::driver_version() const {
  std::array<char, version_size> text{};
  return functions_->driver_version(text.data(), version_size) == success ? text.data() : "";
}

std::optional<double> Nvml::power_limit_watts() const {
  unsigned milliwatts = 0;
  if (functions_->power_limit(functions_->device, &milliwatts) != success) return std::nullopt;
  return milliwatts / 1e3;
}

std::optional<Reading> Nvml::read() const {
  unsigned megahertz = 0;
  unsigned milliwatts = 0;
  unsigned celsius = 0;
  // The clock first: what is timed may be over when the others answer.
  if (functions_->clock(functions_->device, sm_clock, &megahertz) != success ||
      functions_->power(functions_->device, &milliwatts) != success ||
      functions_->temperature(functions_->device, gpu_temperature, &celsius) != success)
    return std::nullopt;
  return Reading{double(megahertz), milliwatts / 1e3, double(celsius)};
}

std::optional<DeviceState> state_of(const std::vector<Reading>& readings) {
  if (readings.empty()) return std::nullopt;
  const auto all = [&](double Reading::*member) {
    std::vector<double> values;
    values.reserve(readings.size());
    for (const Reading& reading : readings) values.push_back(reading.*member);
    return values;
  };
  const std::vector<double> clocks = all(&Reading::sm_clock_mhz);
  const std::vector<double> temperatures = all(&Reading::temperature_celsius);
  return DeviceState{.sm_clock_mhz = median(clocks),
                     .least_sm_clock_mhz = *std::min_element(clocks.begin(), clocks.end()),
                     .power_watts = median(all(&Reading::power_watts)),
                     .temperature_celsius = *std::max_element(temperatures.begin(), temperatures.end())};
}

}  // namespace headroom::harness
