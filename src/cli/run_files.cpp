#include "cli/run_files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "headroom/io/runs_file.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

constexpr std::size_t most_named = 10;  // mistakes of a file, or runs

void note_mistakes(const std::vector<MeasuredRun>& runs, const std::string& file) {
  std::vector<std::string> names;
  for (const MeasuredRun& run : runs) {
    if (!run.mistakes.empty()) names.push_back("'" + printable(run.name) + "'");
  }
  if (names.empty()) return;
  std::vector<Problem> mistakes = mistakes_of(runs, file);
  if (mistakes.size() > most_named) {
    mistakes.resize(most_named);
    mistakes.push_back({file, "has more problems than these"});
  }
  for (const auto& [where, rule] : mistakes) say(fmt::format("warning: {}: {}", where, rule));
  const std::size_t left_out = names.size();
  names.resize(std::min(left_out, most_named));
  say(fmt::format("warning: {}: {} of {} runs {} left out: {}{}", file, left_out, runs.size(),
                  left_out == 1 ? "is" : "are", fmt::join(names, ", "),
                  left_out > most_named ? fmt::format(" and {} more", left_out - most_named) : ""));
}

}  // namespace

std::vector<MeasuredRun> read_run_files(const std::vector<std::string>& files,
                                        std::vector<Problem>& problems) {
  std::vector<MeasuredRun> runs;
  for (const std::string& file : files) {
    collect(problems, [&] {
      const std::vector<MeasuredRun> more = read_runs(file);
      note_mistakes(more, file);
      runs.insert(runs.end(), more.begin(), more.end());
    });
  }
  return runs;
}

void note_skipped(const std::vector<SkippedRun>& skipped, const Style& style) {
  if (style.format != Format::csv) return;
  for (std::size_t i = 0; i < std::min(skipped.size(), most_named); ++i)
    say(fmt::format("warning: skipped: {}: {}", skipped[i].name, text_of(skipped[i])));
  if (skipped.size() > most_named) {
    say(fmt::format("warning: and {} more, which --format json lists", skipped.size() - most_named));
  }
}

}  // namespace headroom::cli
