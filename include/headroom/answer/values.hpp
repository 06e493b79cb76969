// Lists of values and ranges, as texts: "1,2,4,8", "8:64:8", "1024:65536:x2".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

inline constexpr std::int64_t most_values = 1'000'000;

// The parts of a text, empty ones included.
std::vector<std::string> split(std::string_view text, char separator);

// The values of a list whose parts are separated by commas, or by semicolons where a value holds commas itself:
//   1,2,4,8          each a value,
//   8:64:8           or a range, the last included: 8 more at each step,
//   1024:65536:x2    or twice as much at each step.
// Numbers of a range are decimals with up to 15 digits, counted with exactly; its parts may carry the same unit, a
// factor none ("40 GiB:160 GiB:x2"). "8k" is 8192 unless suffixes are kept. Throws InputError at `where`.
enum class Suffixes : std::uint8_t { counted, kept };
std::vector<std::string> values_of(const std::string& where, std::string_view text,
                                   Suffixes suffixes = Suffixes::counted);

}  // namespace headroom
