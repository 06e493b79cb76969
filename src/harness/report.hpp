// What was measured so far, its progress on a terminal, and the samples file that `headroom calibrate` reads.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "designed.hpp"
#include "device_state.hpp"

namespace headroom::harness {

struct Timing {
  double median_seconds = 0;
  double spread = 0;  // half the distance between the quartiles, over the median
  int repeats = 0;    // windows that were timed
};

// Of at least one time. Sorts them.
Timing timing_of(std::vector<double> seconds);

struct Measured {
  Sample sample;  // with its times
  int repeats = 0;
  std::optional<DeviceState> state;
};

// What the device and the libraries call themselves; empty members are left out of the file.
struct Heading {
  std::string device, driver, cuda, cublas, nccl, clocks;
};

// The text of a samples file, as io/samples_file.hpp describes it.
std::string samples_json(const Heading& heading, const std::vector<Measured>& measured);

// Safe to use from several threads: where one of them fails, it writes what another has measured.
class Report {
 public:
  // `planned` samples are expected, for the estimate of the time that is left.
  Report(std::string file, Heading heading, const std::vector<Sample>& planned);
  void add(Sample sample, const Timing& timing, const std::optional<DeviceState>& state);
  void skip(const Sample& sample, const std::string& reason);   // planned, and not to be measured
  void wrong(const Sample& sample, const std::string& reason);  // planned, and not to be trusted: left out
  void note(const std::string& text) const;                     // on stderr, beside the progress
  // Writes all samples to a new file that then takes the name. Throws std::runtime_error.
  void write() const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t wrong_count() const;

 private:
  void advance(const Sample& sample);
  mutable std::mutex mutex_;
  std::string file_;
  Heading heading_;  // asked for at the start: after a failure of the device it would not answer
  std::size_t planned_;
  std::size_t passed_ = 0;
  std::size_t wrong_ = 0;
  Seconds planned_duration_;  // assumed, as is the next: only their ratio counts
  Seconds passed_duration_;
  std::vector<Measured> measured_;
  std::string last_note_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace headroom::harness
