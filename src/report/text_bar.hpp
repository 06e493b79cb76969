// Bars of text: marks of '#', or blocks of an eighth of a column where the screen has Unicode.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

namespace headroom {

// A bar of `share` of `columns`, of at least one mark. Expects a share from 0 to 1.
inline std::string text_bar(double share, double columns, bool blocks) {
  constexpr std::array<std::string_view, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!blocks) return std::string(static_cast<std::size_t>(std::max(std::lround(columns * share), 1L)), '#');
  const auto eighths = static_cast<std::size_t>(std::max(std::lround(8 * columns * share), 1L));
  std::string bar;
  for (std::size_t i = 0; i < eighths / 8; ++i) bar += "█";
  return bar.append(parts[eighths % 8]);
}

// One column of a plot, filled from below: a space where nothing is, and without blocks where less than half is.
inline std::string_view filled(double part, bool blocks) {
  constexpr std::array<std::string_view, 9> parts{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (!blocks) return part > 0.5 ? "#" : " ";
  return parts[static_cast<std::size_t>(std::lround(8 * std::clamp(part, 0.0, 1.0)))];
}

}  // namespace headroom
