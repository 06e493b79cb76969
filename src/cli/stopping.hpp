// Ends long work with what it has: --time-limit, and Ctrl-C once.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "headroom/core/watch.hpp"
#include "headroom/report/stop.hpp"

namespace headroom::cli {

void add_time_limit_flag(Command command, FlagText& flag);

std::optional<Seconds> read_time_limit(const FlagText& flag, std::vector<Problem>& problems);

class Stopping {
 public:
  // From now on the first Ctrl-C is noted, and the time runs.
  explicit Stopping(std::optional<Seconds> limit);

  // Whether to stop. May be asked by any thread.
  bool operator()();

  // What stopped the work, once it has ended. From then on Ctrl-C ends the program. Ends it at once where another
  // signal asked for that (cli/interrupt.hpp).
  std::optional<Stop> end();

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Seconds> limit_;
  std::optional<Clock::time_point> deadline_;
  Console& console_;
  std::atomic<bool> out_of_time_ = false;
};

}  // namespace headroom::cli
