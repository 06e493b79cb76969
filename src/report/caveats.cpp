#include "headroom/report/caveats.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace headroom {
namespace {

std::string counted(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string warning_line(const Warning& warning) {
  return fmt::format("warning [{}]: {}\n", warning.code, warning.text);
}

std::string all_caveats(const Plan& plan) {
  std::string text;
  for (const Warning& warning : plan.warnings) text += warning_line(warning);
  text += fmt::format("{}Assumed of memory (sources: --format json):\n", text.empty() ? "" : "\n");
  for (const Assumption& assumption : plan.assumptions) text += fmt::format("- {}\n", assumption.text);
  return text;
}

}  // namespace

// By the words of its code, which stay the same.
bool is_of_evidence(const Warning& warning) {
  constexpr std::array<std::string_view, 4> words{"assumed", "extrapolated", "transferred", "_rates"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return warning.code.find(word) != std::string::npos; });
}

std::string caveats_text(const Plan& plan, const Style& style) {
  if (style.verbose) return all_caveats(plan);
  std::string text;
  std::size_t hidden = 0;
  for (const Warning& warning : plan.warnings) {
    if (is_of_evidence(warning)) {
      ++hidden;
    } else {
      text += warning_line(warning);
    }
  }
  const std::string more = text.empty() ? "warning" : "more warning";
  return text + counted(plan.assumptions.size(), "assumption") +
         (hidden > 0 ? ", " + counted(hidden, more) : "") + ": -v lists them\n";
}

}  // namespace headroom
