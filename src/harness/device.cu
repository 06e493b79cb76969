#include <array>

#include "device.cuh"
#include "headroom/core/error.hpp"
#include "resources.cuh"

namespace headroom::harness {
namespace {

std::string version(int number, int major, int minor) {
  return std::to_string(number / major) + "." + std::to_string(number % major / minor);
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    const char* const words = status == cudaSuccess ? "none is visible" : cudaGetErrorString(status);
    throw InputError("no NVIDIA GPU to measure", words + std::string("; --dry-run needs none"));
  }
  return count;
}

std::unique_ptr<Nvml> nvml_of(int device) {
  std::array<char, 32> bus_id{};
  check(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device));
  return Nvml::open(bus_id.data());
}

Heading heading_of(const Nvml* nvml) {
  int device = 0;
  cudaDeviceProp properties{};
  int driver = 0;
  int runtime = 0;
  int nccl = 0;
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  check(cudaDriverGetVersion(&driver));
  check(cudaRuntimeGetVersion(&runtime));
  check(ncclGetVersion(&nccl));
  Heading heading{.device = properties.name,
                  .driver = nvml == nullptr ? "" : nvml->driver_version(),
                  .cuda = version(runtime, 1000, 10),
                  .cublas = version(static_cast<int>(cublasLtGetVersion()), 10000, 100) + "." +
                            std::to_string(cublasLtGetVersion() % 100),
                  .nccl = version(nccl, 10000, 100) + "." + std::to_string(nccl % 100)};
  if (heading.driver.empty()) heading.driver = "for CUDA " + version(driver, 1000, 10);
  constexpr int kilo = 1000;  // CUDA counts in kHz
  heading.clocks = "SM at most " + std::to_string(attribute(cudaDevAttrClockRate, device) / kilo) +
                   " MHz, memory " + std::to_string(attribute(cudaDevAttrMemoryClockRate, device) / kilo) +
                   " MHz";
  if (const auto limit = nvml == nullptr ? std::nullopt : nvml->power_limit_watts())
    heading.clocks += ", power limit " + std::to_string(static_cast<int>(*limit)) + " W";
  heading.clocks += "; " + std::to_string(properties.multiProcessorCount) + " multiprocessors";
  return heading;
}

}  // namespace headroom::harness
