#include "cli/stopping.hpp"

#include "cli/interrupt.hpp"

namespace headroom::cli {

void add_time_limit_flag(Command command, FlagText& flag) {
  command.in(topic::work)
      .option("--time-limit", flag, "TIME",
              "End after this time (10s, 2min) with the best found so far, as Ctrl-C does");
}

std::optional<Seconds> read_time_limit(const FlagText& flag, std::vector<Problem>& problems) {
  if (!flag) return {};
  double seconds = 0;
  read_with_unit("--time-limit", *flag, durations, "10s or 2min", seconds, problems);
  return Seconds(seconds);
}

Stopping::Stopping(std::optional<Seconds> limit) : limit_(limit), console_(console()) {
  note_interrupts_to_answer();
  if (!limit) return;
  // A clock does not count as far as a flag may say.
  constexpr double longest = 1e9;
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(std::min(longest, limit->count())));
}

bool Stopping::operator()() {
  if (out_of_time_ || interrupted(console_)) return true;
  if (deadline_ && Clock::now() >= *deadline_) out_of_time_ = true;
  return out_of_time_;
}

std::optional<Stop> Stopping::end() {
  if (out_of_time_) return Stop{.reason = StopReason::time_limit, .after = limit_};
  if (!interrupted(console_)) return {};
  take_interrupt();
  return Stop{.reason = StopReason::interrupted};
}

}  // namespace headroom::cli
