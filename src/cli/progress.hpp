// How far a long command is, on stderr: only on a terminal, and only after a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace headroom::cli {

class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clears the line

  // Whether anybody sees it.
  [[nodiscard]] bool shows() const { return terminal_; }

  void update_points(std::int64_t done, std::int64_t of);
  void update_share(double done);  // of a search, from 0 to 1

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool is_due(Clock::time_point now) const { return terminal_ && now >= next_; }
  void show(const std::string& text, double done, Clock::time_point now);

  bool terminal_ = is_terminal();
  bool shown_ = false;
  static bool is_terminal();
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_ + std::chrono::seconds(1);
};

}  // namespace headroom::cli
