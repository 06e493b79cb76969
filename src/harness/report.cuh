// What was measured so far, its progress on a terminal, and the samples file that `headroom calibrate` reads.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "timing.cuh"

namespace headroom::harness {

// One line of the samples file: members of JSON without braces, then the timing.
struct Measured {
  std::string members;
  Timing timing;
};

class Report {
 public:
  // `planned` samples are expected, for the estimate of the time that is left.
  Report(std::string file, std::size_t planned);
  void add(std::string members, const Timing& timing);
  void note(const std::string& text);  // on stderr, beside the progress
  // Writes all samples to a new file that then takes the name.
  void write() const;
  [[nodiscard]] std::size_t count() const { return measured_.size(); }

 private:
  void show_progress() const;
  std::string file_;
  std::string heading_;  // asked for at the start: after a failure of the device it would not answer
  std::size_t planned_;
  std::vector<Measured> measured_;
  std::chrono::steady_clock::time_point start_;
};

// Ctrl-C asks for an end after the sample under way; what was measured is kept.
void watch_for_interrupt();
bool interrupted();

}  // namespace headroom::harness
