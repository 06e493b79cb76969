#include "sample_text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace headroom {

void LineProblems::report(std::size_t line, std::string rule) {
  if (problems_.size() > most_problems_listed) return;
  if (problems_.size() == most_problems_listed) {
    problems_.push_back({file_, "has more problems than these"});
    return;
  }
  problems_.push_back({fmt::format("{}:{}", file_, line), std::move(rule)});
}

void LineProblems::finish() const {
  if (!problems_.empty()) throw InputError(problems_);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<SampleKind> collective_of(std::string_view name) {
  if (name == "alltoall") return SampleKind::all_to_all;
  if (name == "sendrecv") return SampleKind::send_receive;
  const auto kind = from_name<SampleKind>(name);
  const bool known =
      kind && (is_collective(*kind) || *kind == SampleKind::all_to_all || *kind == SampleKind::send_receive);
  return known ? kind : std::nullopt;
}

}  // namespace headroom
