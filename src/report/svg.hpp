// Shared parts of the pictures.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace headroom::svg {

// Colors that people with any kind of color vision tell apart [Okabe and Ito 2008].
inline constexpr std::array<std::string_view, 6> colors{"#0072B2", "#D55E00", "#009E73",
                                                        "#CC79A7", "#E69F00", "#56B4E9"};

inline std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '<'   ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '&' ? "&amp;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  }
  return result;
}

}  // namespace headroom::svg
