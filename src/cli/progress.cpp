#include "cli/progress.hpp"

#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

namespace headroom::cli {
namespace {

std::string remaining(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

Progress::Progress(std::int64_t points) : points_(points), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(std::int64_t done) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double rate = static_cast<double>(done) / std::chrono::duration<double>(now - start_).count();
  const std::string left =
      done > 0 ? ", " + remaining(static_cast<double>(points_ - done) / rate) + " left" : "";
  fmt::print(stderr, "\r{} of {} points, {:.1f} a second{}\x1b[K", done, points_, rate, left);
}

}  // namespace headroom::cli
