#include "precision_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace headroom {
namespace {

struct PrecisionWord {
  std::string_view text;
  Precision precision;
};

// The first that is found counts: a format of blocks is told by its own name, whatever else is said of it.
constexpr std::array precision_words{
    PrecisionWord{"nvfp4", Precision::nvfp4},
    PrecisionWord{"mxfp8", Precision::mxfp8},
    PrecisionWord{"block", Precision::fp8_blockwise},
    PrecisionWord{"delayed", Precision::fp8_delayed},
    PrecisionWord{"amax history", Precision::fp8_delayed},
    PrecisionWord{"tensorwise", Precision::fp8},
    PrecisionWord{"per-tensor", Precision::fp8},
    PrecisionWord{"current", Precision::fp8},
    PrecisionWord{"all-gather", Precision::fp8},
    PrecisionWord{"transformerengine", Precision::fp8_delayed},
    PrecisionWord{"transformer engine", Precision::fp8_delayed},
};

}  // namespace

std::optional<Precision> precision_of_words(std::string_view words) {
  std::string plain(words);
  std::transform(plain.begin(), plain.end(), plain.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto names = [&](std::string_view part) { return plain.find(part) != std::string::npos; };
  if (!names("fp8") && !names("float8") && !names("fp4")) return Precision::bf16;
  if (const auto alone = from_name<Precision>(plain)) return alone;
  if (names("rowwise") || names("row-wise")) return std::nullopt;
  for (const PrecisionWord& word : precision_words) {
    if (names(word.text)) return word.precision;
  }
  return std::nullopt;
}

}  // namespace headroom
