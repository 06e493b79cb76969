// How far a long command is, on one line of stderr: only on a terminal, and gone at the end. A thread draws it ten times
// a second, so that a long step shows too; where there are no threads, whoever tells of a step does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cli/console.hpp"
#include "headroom/search/search.hpp"

namespace headroom::cli {

class Progress {
 public:
  // `what`: the first step, "reading runs".
  explicit Progress(std::string_view what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // clears the line

  // Whether anybody sees it.
  [[nodiscard]] bool shows() const { return drawer_.joinable() || draws_itself_; }

  // `of`: 0 where nobody knows.
  void update(std::string_view step, std::int64_t done, std::int64_t of);
  // Of a search, whose best plan shows as soon as there is one.
  void update(const SearchProgress& search);

  // Tells of work that nothing stops.
  Watch watch() {
    return {.stops = {}, .tells = [this](std::string_view step, std::int64_t done, std::int64_t of) {
              update(step, done, of);
            }};
  }

  // Prints while no line stands there.
  template <class Print>
  void without_line(const Print& print) {
    const std::lock_guard lock(mutex_);
    clear();
    print();
  }

 private:
  using Clock = std::chrono::steady_clock;
  void draw_until_done();
  void draw_if_due();
  void draw(Clock::time_point now);
  [[nodiscard]] std::string line(Clock::time_point now, std::size_t most) const;  // columns
  void clear();

  [[nodiscard]] std::string json() const;

  Caller* caller_;  // whose watch takes the place of the line; null: none
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_drawing_ = false;
  bool draws_itself_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_ = start_;
  std::string step_;
  std::int64_t done_ = 0;
  std::int64_t of_ = 0;
  std::optional<Candidate> best_;
  std::optional<double> decided_;
  std::optional<Seconds> least_;
  bool shown_ = false;
  std::thread drawer_;
};

}  // namespace headroom::cli
