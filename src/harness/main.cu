// headroom-measure: times on this machine's GPUs what the time model predicts, and writes the samples file that
// `headroom calibrate` fits rates to.
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "collectives.cuh"
#include "kernels.cuh"
#include "products.cuh"
#include "report.cuh"
#include "resources.cuh"

namespace headroom::harness {
namespace {

constexpr const char* usage =
    "usage: headroom-measure FILE [products] [kernels] [collectives]\n"
    "Measures what is named, or all, on the GPUs that CUDA_VISIBLE_DEVICES shows, and writes the samples to "
    "FILE.\n"
    "Ctrl-C ends it after the sample under way and keeps what was measured.\n"
    "Then: headroom calibrate FILE --base SYSTEM -o my-system.json\n";

enum class End { done = 0, failed = 1, bad_usage = 2, interrupted = 130 };

struct Options {
  std::string file;
  bool products = false;
  bool kernels = false;
  bool collectives = false;
};

bool read(int argc, char** argv, Options& options) {
  if (argc < 2 || argv[1][0] == '-') return false;
  options.file = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string_view what = argv[i];
    if (what == "products")
      options.products = true;
    else if (what == "kernels")
      options.kernels = true;
    else if (what == "collectives")
      options.collectives = true;
    else
      return false;
  }
  if (argc == 2) options.products = options.kernels = options.collectives = true;
  return true;
}

End measure(const Options& options) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices));
  const std::size_t planned = (options.products ? product_samples() : 0) +
                              (options.kernels ? kernel_samples() : 0) +
                              (options.collectives ? collective_samples(devices) : 0);
  Report report(options.file, planned);
  watch_for_interrupt();
  try {
    check(cudaSetDevice(0));
    if (options.kernels) measure_kernels(report);
    if (options.products && !interrupted()) measure_products(report);
    if (options.collectives && devices < 2) report.note("one GPU only: no collectives");
    if (options.collectives && devices >= 2 && !interrupted()) measure_collectives(report, devices);
  } catch (const std::exception& error) {
    report.note(error.what());
    if (report.count() == 0) return End::failed;
    report.write();
    report.note("kept the " + std::to_string(report.count()) + " samples before that in " + options.file);
    return End::failed;
  }
  if (report.count() > 0) report.write();
  report.note(std::to_string(report.count()) + " samples in " + options.file);
  return interrupted() ? End::interrupted : End::done;
}

}  // namespace
}  // namespace headroom::harness

int main(int argc, char** argv) {
  using namespace headroom::harness;
  Options options;
  if (!read(argc, argv, options)) {
    std::fputs(usage, stderr);
    return static_cast<int>(End::bad_usage);
  }
  try {
    return static_cast<int>(measure(options));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headroom-measure: %s\n", error.what());
    return static_cast<int>(End::failed);
  }
}
