// Lists of values and ranges as texts: "1,2,4,8", "8:64:8", "1024:65536:x2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

inline constexpr std::int64_t most_values = 1'000'000;

// Returns the parts of a text, including empty ones.
std::vector<std::string> split(std::string_view text, char separator);

// Returns the values of a list. Commas separate its parts, or semicolons if values contain commas. A part is:
//   1,2,4,8          a value,
//   8:64:8           a range with its last value: 8 more at each step,
//   1024:65536:x2    a range: twice as much at each step.
// Numbers of a range are decimals with up to 15 digits, counted exactly. Start, end and step may have the
// same unit, a factor has none ("40 GiB:160 GiB:x2"). "8k" is 8192 unless suffixes are kept. Throws
// InputError at `where`.
enum class Suffixes : std::uint8_t { counted, kept };
std::vector<std::string> values_of(const std::string& where, std::string_view text,
                                   Suffixes suffixes = Suffixes::counted);

}  // namespace headroom
