#include "cli/progress.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/ioctl.h>
#include <unistd.h>

#include "headroom/core/count_text.hpp"
#include "report/text.hpp"

namespace headroom::cli {
namespace {

using namespace std::chrono_literals;
constexpr auto patience = 1s;           // before a step is named
constexpr auto between_frames = 100ms;  // and before a best plan is
constexpr auto long_search = 5s;

std::string remaining(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string division_text(const Strategy& strategy) {
  std::string text = fmt::format("TP {}", strategy.tensor_parallel);
  if (strategy.context_parallel > 1) text += fmt::format(" x CP {}", strategy.context_parallel);
  return text + fmt::format(" x PP {} x DP {}", strategy.pipeline_parallel, strategy.data_parallel);
}

// What a line of the terminal holds.
std::size_t columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(std::string_view what) : caller_(console().caller), step_(what) {
  const bool seen = caller_ != nullptr ? bool(caller_->watch) : isatty(STDERR_FILENO) != 0;
  if (!seen) return;
  try {
    drawer_ = std::thread([this] { draw_until_done(); });
  } catch (const std::system_error&) {
    draws_itself_ = true;  // the machine has no more threads, or none at all, as a browser's
  }
}

Progress::~Progress() {
  if (drawer_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      done_drawing_ = true;
    }
    ended_.notify_all();
    drawer_.join();
  }
  clear();
}

void Progress::update(std::string_view step, std::int64_t done, std::int64_t of) {
  if (!shows()) return;
  const std::lock_guard lock(mutex_);
  step_ = step;
  done_ = done;
  of_ = of;
  decided_.reset();
  draw_if_due();
}

void Progress::update(const SearchProgress& search) {
  if (!shows()) return;
  const std::lock_guard lock(mutex_);
  decided_ = search.decided;
  least_ = search.least;
  if (search.best != nullptr && (!best_ || *search.best < *best_)) best_ = *search.best;
  draw_if_due();
}

void Progress::draw_until_done() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, between_frames, [this] { return done_drawing_; })) draw(Clock::now());
}

void Progress::draw_if_due() {
  if (!draws_itself_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < between_frames) return;
  drawn_ = now;
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  if (caller_ != nullptr) {
    if (caller_->watch(json())) caller_->stop = true;
    return;
  }
  const std::size_t most = columns() - 1;
  std::string text = line(now, most);
  if (text.empty()) return;
  if (text.size() > most) text.resize(most);
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
  shown_ = true;
}

std::string Progress::json() const {
  nlohmann::ordered_json now{{"step", step_}, {"done", done_}};
  if (of_ > 0) now["of"] = of_;
  if (best_) now["best_iteration_seconds"] = best_->iteration.count();
  if (decided_) now["decided"] = *decided_;
  if (best_ && least_) now["gap"] = std::max(0.0, best_->iteration / *least_ - 1);
  return now.dump();
}

std::string Progress::line(Clock::time_point now, std::size_t most) const {
  const bool patient = now - start_ < patience;
  if (patient && !best_) return {};
  std::string text;
  if (best_)
    text = fmt::format("best so far {} ({})", human(best_->iteration), division_text(best_->strategy));
  if (patient) return text;
  if (decided_ && *decided_ < 1) {
    const std::string decided =
        fmt::format("{}{:.0f}% decided", text.empty() ? "" : ", ", std::floor(100 * *decided_));
    if (!best_ || !least_) return text + decided;
    const double gap = std::max(0.0, best_->iteration / *least_ - 1);
    const std::string within = fmt::format(", within {:.1f}%", 100 * gap);
    const std::string whole = text + within + " of the best possible" + decided;
    if (whole.size() > most) return text + within + decided;
    const std::string advice = " (Ctrl-C ends with it, --fast searches less)";
    return whole + (now - start_ > long_search && whole.size() + advice.size() <= most ? advice : "");
  }
  if (!text.empty()) text += ", ";
  text += step_;
  if (of_ == 0) return done_ == 0 ? text : text + fmt::format(" {}", done_);
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double part = static_cast<double>(done_) / static_cast<double>(of_);
  return text + fmt::format(" {} of {}{}", done_, of_,
                            done_ > 0 ? ", " + remaining(elapsed * (1 - part) / part) + " left" : "");
}

void Progress::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace headroom::cli
