// headroom-measure: times on GPUs what the time model predicts, and writes the samples file that `headroom calibrate`
// fits rates to.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "collectives.cuh"
#include "device.cuh"
#include "headroom/core/error.hpp"
#include "kernels.cuh"
#include "options.hpp"
#include "products.cuh"
#include "world.cuh"

namespace headroom::harness {
namespace {

enum class End { done = 0, failed = 1, bad_input = 2, interrupted = 130 };

void say(const std::string& text) { std::fprintf(stderr, "headroom-measure: %s\n", text.c_str()); }

std::vector<Sample> of_kind(const std::vector<Sample>& samples, bool (*wanted)(SampleKind)) {
  std::vector<Sample> some;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(some),
               [&](const Sample& sample) { return wanted(sample.kind); });
  return some;
}
bool is_kernel(SampleKind kind) { return kind == SampleKind::streaming || kind == SampleKind::empty_kernel; }
bool is_product(SampleKind kind) { return kind == SampleKind::matrix_product; }
bool is_between_ranks(SampleKind kind) { return !is_kernel(kind) && !is_product(kind); }

// Before the GPUs are kept busy for minutes. What is there stays.
void check_writable(const std::string& file) {
  const std::string partial = file + ".partial";
  const bool writable = std::ofstream(partial, std::ios::trunc).is_open();
  if (!writable || std::filesystem::is_directory(file)) throw InputError(file, "cannot be written");
  std::filesystem::remove(partial);
}

// GPUs that this process drives.
int local_devices(const Options& options, const Launch& launch) {
  const int found = device_count();
  if (options.gpus > found)
    throw InputError("--gpus", "must be at most " + std::to_string(found) + ", which CUDA sees here");
  if (launch.ranks == 1) return options.gpus > 0 ? options.gpus : found;
  if (found > 1 && launch.local_rank >= found)
    throw InputError("local rank", std::to_string(launch.local_rank) + " has no GPU: CUDA sees " +
                                       std::to_string(found) + " on this node");
  if (options.rendezvous.file.empty() && std::getenv("NCCL_COMM_ID") == nullptr) {
    throw InputError("--rendezvous", "is needed by the " + std::to_string(launch.ranks) + " processes of " +
                                         launch.launcher + ", or NCCL_COMM_ID=HOST:PORT in the environment");
  }
  return found;
}

// The report of rank 0, wherever that is; nothing in other processes.
class Measuring {
 public:
  Measuring(const Options& options, const Launch& launch, int devices)
      : options_(options), launch_(launch), devices_(devices) {}

  End run() {
    watch_for_interrupt();
    const int ranks = launch_.ranks > 1 ? launch_.ranks : devices_;
    if (ranks > 1 && options_.collectives) {
      run_ranks(
          launch_, devices_, options_.rendezvous, [this](const World& world) { together(world); },
          [this](const std::exception& error) { fail(error); });
    } else if (options_.collectives && launch_.rank == 0) {
      say("one GPU only: no collectives");
    }
    if (launch_.rank != 0) return End::done;
    try {
      check(cudaSetDevice(launch_.ranks > 1 && devices_ > 1 ? launch_.local_rank : 0));
      if (!report_) begin(1, 1);
      if (!interrupted()) alone();
      if (report_->count() > 0) report_->write();
    } catch (const std::exception& error) {
      fail(error);
    }
    const std::size_t count = report_->count();
    report_->note(count > 0 ? std::to_string(count) + " samples in " + options_.file
                            : "no sample was measured; nothing is written");
    if (const std::size_t wrong = report_->wrong_count(); wrong > 0)
      report_->note(std::to_string(wrong) + " samples were wrong and are left out");
    if (interrupted()) return End::interrupted;
    return report_->wrong_count() > 0 ? End::failed : End::done;
  }

 private:
  void begin(std::int64_t ranks, std::int64_t nodes) {
    int device = 0;
    check(cudaGetDevice(&device));
    nvml_ = nvml_of(device);
    planned_ = planned_samples(options_, ranks, nodes);
    report_.emplace(options_.file, heading_of(nvml_.get()), planned_);
    if (!nvml_) report_->note("no NVML here: clocks, power and temperature are not recorded");
  }

  // What takes all ranks, first: no rank waits for what one does alone.
  void together(const World& world) {
    const bool first = world.all.rank() == 0;
    if (first) begin(world.all.ranks(), world.nodes);
    const Session session{first ? &*report_ : nullptr, first ? nvml_.get() : nullptr};
    const std::vector<Sample> planned =
        first ? planned_ : planned_samples(options_, world.all.ranks(), world.nodes);
    measure_collectives(of_kind(planned, is_between_ranks), world.all, session);
  }

  void alone() {
    const Session session{&*report_, nvml_.get()};
    measure_kernels(of_kind(planned_, is_kernel), session);
    measure_products(of_kind(planned_, is_product), session);
  }

  // Other threads may wait for this rank in NCCL, which nothing wakes: the process ends here.
  [[noreturn]] void fail(const std::exception& error) {
    say(error.what());
    if (launch_.rank == 0 && report_ && report_->count() > 0) {
      try {
        report_->write();
        say("kept the " + std::to_string(report_->count()) + " samples before that in " + options_.file);
      } catch (const std::exception& second) {
        say(second.what());
      }
    }
    std::_Exit(static_cast<int>(End::failed));
  }

  const Options& options_;
  const Launch& launch_;
  int devices_;
  std::unique_ptr<Nvml> nvml_;
  std::vector<Sample> planned_;
  std::optional<Report> report_;
};

End run(int argc, const char* const* argv) {
  const std::optional<Options> options = read_options(argc, argv);
  if (!options) return End::done;
  const Launch launch = launch_of([](const char* name) { return std::getenv(name); });
  // Each of several processes drives one GPU, whichever the launcher gave it.
  if (launch.ranks > 1 && options->gpus > 0)
    throw InputError("--gpus", "is for one process alone; " + launch.launcher + " started " +
                                   std::to_string(launch.ranks) + ", each of which drives one GPU");
  if (options->dry_run) {
    if (launch.rank > 0) return End::done;
    int found = 0;
    if (options->gpus == 0 && launch.ranks == 1 && cudaGetDeviceCount(&found) != cudaSuccess) found = 0;
    const int ranks = launch.ranks > 1 ? launch.ranks : std::max({options->gpus, found, 1});
    std::fputs(dry_run(*options, ranks, launch.nodes).c_str(), stdout);
    return End::done;
  }
  const int devices = local_devices(*options, launch);
  if (launch.rank == 0) check_writable(options->file);
  return Measuring(*options, launch, devices).run();
}

}  // namespace
}  // namespace headroom::harness

int main(int argc, char** argv) {
  using namespace headroom::harness;
  try {
    return static_cast<int>(run(argc, argv));
  } catch (const headroom::InputError& error) {
    for (const auto& [where, rule] : error.problems())
      say("error: " + where + (where.empty() ? "" : ": ") + rule);
    return static_cast<int>(End::bad_input);
  } catch (const std::exception& error) {
    say(error.what());
    return static_cast<int>(End::failed);
  }
}
