#include "headroom/report/memory_plot.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/counts.hpp"
#include "report/text_bar.hpp"

namespace headroom {
namespace {

constexpr std::int64_t plot_lines = 8;  // in lines

// Bytes beside what the rank holds throughout, along a straight line.
struct Stretch {
  Seconds from;
  Seconds to;
  Bytes at_start;
  Bytes at_end;
};

std::vector<Stretch> stretches(const Trace& trace, std::int64_t rank, Seconds end) {
  const std::vector<StepActivations>& activations = trace.activations[index(rank)];
  std::vector<Stretch> parts;
  parts.reserve(2 * activations.size() + 1);
  Seconds clock;
  Bytes level;
  std::size_t done = 0;
  for (const ReplayedStep& event : trace.steps) {
    if (event.rank != rank) continue;
    const StepActivations& step = activations[done++];
    EXPECTS(step.step == event.step);
    if (event.start > clock) parts.push_back({clock, event.start, level, level});
    const bool forward = step.step.pass == Pass::forward;
    const Bytes after = total(step.after);
    parts.push_back({event.start, event.end, forward ? level : total(step.highest), after});
    clock = event.end;
    level = after;
  }
  parts.push_back({clock, std::max(clock, end), level, level});
  return parts;
}

Bytes at(const Stretch& part, Seconds time) {
  if (part.to <= part.from) return std::max(part.at_start, part.at_end);
  const double share = std::clamp((time - part.from) / (part.to - part.from), 0.0, 1.0);
  return part.at_start + share * (part.at_end - part.at_start);
}

}  // namespace

std::string memory_plot(const Trace& trace, std::int64_t rank, Seconds end, const TimelineSize& size) {
  const auto ranks = std::ssize(trace.activations);
  const auto label = static_cast<std::int64_t>(fmt::format("rank {} ", ranks - 1).size());
  EXPECTS(size.columns > label && end > Seconds(0) && rank >= 0 && rank < ranks);
  const auto columns = index(size.columns - label);
  const Seconds span = (1 / real(size.columns - label)) * end;
  const auto start_of = [&](std::size_t column) { return real(static_cast<std::int64_t>(column)) * span; };

  std::vector<Bytes> most(columns, Bytes(0));
  Bytes peak;
  Seconds when;
  for (const Stretch& part : stretches(trace, rank, end)) {
    const Bytes highest = std::max(part.at_start, part.at_end);
    if (highest > peak) {
      peak = highest;
      when = part.at_start < part.at_end ? part.to : part.from;
    }
    const auto first = static_cast<std::size_t>(std::max(0.0, std::floor(part.from / span)));
    for (std::size_t i = first; i < columns && start_of(i) <= part.to; ++i) {
      const Seconds left = std::max(part.from, start_of(i));
      const Seconds right = std::min(part.to, start_of(i + 1));
      most[i] = std::max({most[i], at(part, left), at(part, right)});
    }
  }

  const ResidentMemory& resident = trace.resident[index(rank)];
  const Bytes bottom = resident.state + resident.reserved;
  std::string text;
  for (std::int64_t line = plot_lines; line > 0; --line) {
    text +=
        fmt::format("{:>{}.2f} ", (bottom + real(line) / real(plot_lines) * peak).count() / gibi, label - 1);
    for (const Bytes bytes : most)
      text += filled(real(plot_lines) * (bytes / peak) - real(line - 1), size.blocks);
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  text += fmt::format("{:>{}.2f} {}\n", bottom.count() / gibi, label - 1, std::string(columns, '='));
  return text + fmt::format("GiB on rank {}, of which {:.2f} throughout (=); the peak comes at {:.3f} s\n",
                            rank, bottom.count() / gibi, when.count());
}

}  // namespace headroom
