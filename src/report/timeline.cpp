#include "headroom/report/timeline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace headroom {
namespace {

// One row, and what it is drawn with. Times are in columns.
struct Row {
  std::int64_t rank = 0;
  std::string text;
  std::vector<double> load;  // of each column: the part that the rank computes
};

// Returns ranks evenly spaced from the first to the last.
std::vector<Row> shown_rows(std::int64_t ranks, const TimelineSize& size, std::size_t columns) {
  const std::int64_t count = std::min(ranks, size.rows);
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back({.rank = count == 1 ? 0 : i * (ranks - 1) / (count - 1),
                    .text = std::string(columns, '.'),
                    .load = std::vector<double>(columns, 0)});
  }
  return rows;
}

// Mark of a microbatch by its last digit: digits for forward, letters from a for backward, letters from A for
// weights alone.
char mark(const Step& step) {
  constexpr std::array<char, 3> first{'0', 'a', 'A'};
  return static_cast<char>(first.at(static_cast<std::size_t>(step.pass)) +
                           static_cast<char>(step.microbatch % 10));
}

// Two overlapping passes take every second column each.
enum class Columns : std::uint8_t { all, even, odd };

// Fills the columns whose middle lies between the two times.
void draw(Row& row, double from, double to, char what, Columns which = Columns::all) {
  const auto first = static_cast<std::size_t>(std::max(0.0, std::ceil(from - 0.5)));
  const auto end = static_cast<std::size_t>(std::max(0.0, std::ceil(to - 0.5)));
  for (std::size_t i = first; i < std::min(end, row.text.size()); ++i) {
    const bool even = (i - first) % 2 == 0;
    if (which == Columns::all || even == (which == Columns::even)) row.text[i] = what;
  }
}

void add_load(Row& row, double from, double to) {
  for (auto i = static_cast<std::size_t>(from); i < row.load.size() && static_cast<double>(i) < to; ++i) {
    const auto column = static_cast<double>(i);
    row.load[i] += std::min(to, column + 1) - std::max(from, column);
  }
}

// In quarters, rounded.
std::string load_text(const std::vector<double>& load) {
  constexpr std::string_view quarters = ".-+*#";
  std::string text;
  for (const double part : load)
    text += quarters[static_cast<std::size_t>(std::lround(4 * std::min(part, 1.0)))];
  return text;
}

std::string clock_text(Seconds time) {
  return time >= Seconds(1) ? fmt::format("{:.2f} s", time.count())
                            : fmt::format("{:.2f} ms", time.count() * 1e3);
}

}  // namespace

std::string timeline(const std::vector<ReplayedStep>& steps, std::int64_t ranks, Seconds end,
                     const TimelineSize& size) {
  const auto label = static_cast<std::int64_t>(fmt::format("rank {} ", ranks - 1).size());
  EXPECTS(size.columns > label && size.rows > 0 && end > Seconds(0));
  const auto columns = static_cast<std::size_t>(size.columns - label);
  const bool crowded = steps.size() > static_cast<std::size_t>(ranks) * columns;

  std::vector<Row> rows = shown_rows(ranks, size, columns);
  for (const ReplayedStep& event : steps) {
    const auto row = std::lower_bound(rows.begin(), rows.end(), event.rank,
                                      [](const Row& one, std::int64_t rank) { return one.rank < rank; });
    if (row == rows.end() || row->rank != event.rank) continue;
    const auto column = [&](Seconds time) { return time / end * static_cast<double>(columns); };
    if (crowded) {
      // Of two passes beside each other one stands for both.
      if (!event.step.beside || event.step.pass == Pass::forward)
        add_load(*row, column(event.start), column(event.end));
    } else if (event.step.beside) {
      const bool forward = event.step.pass == Pass::forward;
      draw(*row, column(event.start), column(event.end), mark(event.step),
           forward ? Columns::even : Columns::odd);
      draw(*row, column(event.end), column(event.sent), '>');
    } else {
      draw(*row, column(event.start), column(event.recompute_end), '~');
      draw(*row, column(event.recompute_end), column(event.end), mark(event.step));
      draw(*row, column(event.end), column(event.sent), '>');
    }
  }

  const bool for_weights = std::any_of(steps.begin(), steps.end(), [](const ReplayedStep& event) {
    return event.step.pass == Pass::backward_weight;
  });
  const bool beside =
      std::any_of(steps.begin(), steps.end(), [](const ReplayedStep& event) { return event.step.beside; });
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}{}\n", fmt::format("rank {}", row.rank), label,
                        crowded ? load_text(row.load) : row.text);
  }
  text += crowded ? "time a rank computes, by quarters of a column: # all, * + - less, . none"
                  : fmt::format(
                        "0-9 forward and a-j backward{} of microbatch 0-9, 10-19 and so on; ~ recompute, "
                        "> transfer, . idle{}",
                        for_weights ? ", A-J for weights," : "",
                        beside ? "; 1a1a: a forward pass beside a backward pass" : "");
  return text + fmt::format("; the pipeline takes {}\n", clock_text(end));
}

}  // namespace headroom
