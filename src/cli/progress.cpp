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

bool Progress::is_terminal() { return isatty(STDERR_FILENO) != 0; }

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update_points(std::int64_t done, std::int64_t of) {
  const Clock::time_point now = Clock::now();
  if (!is_due(now)) return;
  const double rate = static_cast<double>(done) / std::chrono::duration<double>(now - start_).count();
  show(fmt::format("{} of {} points, {:.1f} a second", done, of, rate),
       static_cast<double>(done) / static_cast<double>(of), now);
}

void Progress::update_share(double done) {
  const Clock::time_point now = Clock::now();
  if (is_due(now)) show(fmt::format("searched {:.0f}%", 100 * done), done, now);
}

void Progress::show(const std::string& text, double done, Clock::time_point now) {
  next_ = now + std::chrono::milliseconds(200);
  shown_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string left = done > 0 ? ", " + remaining(elapsed * (1 - done) / done) + " left" : "";
  fmt::print(stderr, "\r{}{}\x1b[K", text, left);
}

}  // namespace headroom::cli
