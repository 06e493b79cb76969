#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <unistd.h>

#include "report.cuh"
#include "resources.cuh"

namespace headroom::harness {
namespace {

volatile std::sig_atomic_t stop = 0;

std::string version(int number, int major, int minor) {
  return std::to_string(number / major) + "." + std::to_string(number % major / minor);
}

// Versions and clocks, as members of JSON.
std::string heading() {
  int device = 0;
  cudaDeviceProp properties{};
  int driver = 0;
  int runtime = 0;
  int nccl = 0;
  int clock = 0;
  int memory_clock = 0;
  check(cudaGetDevice(&device));
  check(cudaGetDeviceProperties(&properties, device));
  check(cudaDriverGetVersion(&driver));
  check(cudaRuntimeGetVersion(&runtime));
  check(ncclGetVersion(&nccl));
  check(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
  check(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device));
  std::ostringstream text;
  text << "  \"device\": \"" << properties.name << "\",\n  \"driver\": \"for CUDA "
       << version(driver, 1000, 10) << "\",\n  \"cuda\": \"" << version(runtime, 1000, 10)
       << "\",\n  \"cublas\": \"" << cublasLtGetVersion() << "\",\n  \"nccl\": \"" << nccl / 10000 << '.'
       << nccl % 10000 / 100 << '.' << nccl % 100 << "\",\n  \"clocks\": \"at most " << clock / 1000
       << " MHz, memory " << memory_clock / 1000 << " MHz; " << properties.multiProcessorCount
       << " multiprocessors\",\n";
  return text.str();
}

}  // namespace

void watch_for_interrupt() {
  std::signal(SIGINT, [](int) { stop = 1; });
}
bool interrupted() { return stop != 0; }

Report::Report(std::string file, std::size_t planned)
    : file_(std::move(file)),
      heading_(heading()),
      planned_(planned),
      start_(std::chrono::steady_clock::now()) {}

void Report::add(std::string members, const Timing& timing) {
  measured_.push_back({std::move(members), timing});
  show_progress();
}

void Report::note(const std::string& text) {
  std::fprintf(stderr, "\r\033[Kheadroom-measure: %s\n", text.c_str());
}

void Report::show_progress() const {
  if (isatty(STDERR_FILENO) == 0) return;
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double done = double(measured_.size()) / double(planned_);
  constexpr int width = 40;
  std::string bar(width, ' ');
  for (int i = 0; i < int(done * width) && i < width; ++i) bar[static_cast<std::size_t>(i)] = '#';
  std::fprintf(stderr, "\r[%s] %zu of %zu, about %.0f s left \033[K", bar.c_str(), measured_.size(), planned_,
               done > 0 ? passed / done - passed : 0);
}

void Report::write() const {
  const std::string partial = file_ + ".partial";
  std::ofstream out(partial, std::ios::trunc);
  out.precision(9);
  out << "{\n  \"format\": 1,\n" << heading_ << "  \"samples\": [\n";
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const Measured& each = measured_[i];
    out << "    {" << each.members << ", \"median_seconds\": " << each.timing.median_seconds;
    if (each.timing.spread > 0) out << ", \"spread\": " << each.timing.spread;
    out << (i + 1 < measured_.size() ? "},\n" : "}\n");
  }
  out << "  ]\n}\n";
  out.close();
  if (!out) throw std::runtime_error(partial + ": cannot be written");
  std::filesystem::rename(partial, file_);
}

}  // namespace headroom::harness
