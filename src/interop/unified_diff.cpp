#include "interop/unified_diff.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace headroom {
namespace {

constexpr std::size_t kept_lines = 3;

struct DiffLine {
  char kind = ' ';  // ' ', '-' or '+'
  std::string_view line;
};

// The lines of both texts in order. What they share at either end is set aside, so that the quadratic search for
// the longest common subsequence sees only what lies between the first and the last change.
std::vector<DiffLine> steps_between(const std::vector<std::string_view>& before,
                                    const std::vector<std::string_view>& after) {
  const auto start = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
  const auto head = static_cast<std::size_t>(start.first - before.begin());
  std::size_t tail = 0;
  while (tail < std::min(before.size(), after.size()) - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail])
    ++tail;
  const std::size_t rows = before.size() - head - tail;
  const std::size_t columns = after.size() - head - tail;
  std::vector<std::size_t> common((rows + 1) * (columns + 1));
  const auto at = [&](std::size_t row, std::size_t column) -> std::size_t& {
    return common[row * (columns + 1) + column];
  };
  for (std::size_t row = rows; row-- > 0;) {
    for (std::size_t column = columns; column-- > 0;)
      at(row, column) = before[head + row] == after[head + column]
                            ? at(row + 1, column + 1) + 1
                            : std::max(at(row + 1, column), at(row, column + 1));
  }
  std::vector<DiffLine> steps;
  for (std::size_t i = 0; i < head; ++i) steps.push_back({' ', before[i]});
  std::size_t row = 0;
  std::size_t column = 0;
  while (row < rows || column < columns) {
    if (row < rows && column < columns && before[head + row] == after[head + column]) {
      steps.push_back({' ', before[head + row++]});
      ++column;
    } else if (row < rows && (column == columns || at(row + 1, column) >= at(row, column + 1))) {
      steps.push_back({'-', before[head + row++]});
    } else {
      steps.push_back({'+', after[head + column++]});
    }
  }
  for (std::size_t i = before.size() - tail; i < before.size(); ++i) steps.push_back({' ', before[i]});
  return steps;
}

// "start,count" of a hunk; of an empty one the line before it.
std::string range_of(std::size_t start, std::size_t count) {
  const std::size_t first = count == 0 ? start : start + 1;
  return count == 1 ? fmt::format("{}", first) : fmt::format("{},{}", first, count);
}

}  // namespace

std::vector<std::string_view> ended_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::string unified_diff(const std::string& file, std::string_view before, std::string_view after) {
  if (before == after) return "";
  const std::vector<DiffLine> steps = steps_between(ended_lines(before), ended_lines(after));
  // patch(1) ends a name at a tab where there is one, else at a space.
  const std::string name = file.find(' ') == std::string::npos ? file : file + "\t";
  std::string diff = fmt::format("--- {0}\n+++ {0}\n", name);
  std::size_t old_line = 0;  // lines of either text before the step
  std::size_t new_line = 0;
  for (std::size_t i = 0; i < steps.size();) {
    if (steps[i].kind == ' ') {
      ++i, ++old_line, ++new_line;
      continue;
    }
    // A hunk ends where twice the context follows without a change.
    const std::size_t lead = std::min(i, kept_lines);
    std::size_t end = i;
    for (std::size_t next = i; next < steps.size() && next <= end + 2 * kept_lines + 1; ++next) {
      if (steps[next].kind != ' ') end = next;
    }
    end = std::min(end + 1 + kept_lines, steps.size());
    std::string body;
    std::size_t old_count = 0;
    std::size_t new_count = 0;
    for (std::size_t step = i - lead; step < end; ++step) {
      const auto& [kind, line] = steps[step];
      if (kind != '+') ++old_count;
      if (kind != '-') ++new_count;
      body += kind;
      body += line;
      if (!line.ends_with('\n')) body += "\n\\ No newline at end of file\n";
    }
    diff += fmt::format("@@ -{} +{} @@\n{}", range_of(old_line - lead, old_count),
                        range_of(new_line - lead, new_count), body);
    old_line += old_count - lead;
    new_line += new_count - lead;
    i = end;
  }
  return diff;
}

}  // namespace headroom
