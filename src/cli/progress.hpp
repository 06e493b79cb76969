// How far a long command is, on stderr: only on a terminal, and only after a second.
#pragma once

#include <chrono>
#include <cstdint>

namespace headroom::cli {

class Progress {
 public:
  explicit Progress(std::int64_t points);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clears the line

  void update(std::int64_t done);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t points_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

}  // namespace headroom::cli
