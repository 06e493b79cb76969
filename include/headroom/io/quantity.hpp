// Quantities as text with a unit: "80 GiB", "300 GB/s", "10 us", "312 TFLOP/s".
//
// GiB is 2^30 bytes, GB is 10^9. Units are case-sensitive and are never bits; the space before one is
// optional.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "headroom/core/units.hpp"

namespace headroom {

// The value, or the rule that the text breaks, to be put after the place where the text stood.
template <class T>
using Parsed = std::variant<T, std::string>;

// A text is a finite, non-negative decimal number and a unit. The broken rule names the accepted units.
Parsed<Bytes> parse_bytes(std::string_view text);
Parsed<Seconds> parse_seconds(std::string_view text);
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text);
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);
Parsed<Watts> parse_watts(std::string_view text);

// The shortest text in the largest unit that reads back as the same value. Expects what parsing accepts.
std::string to_text(Bytes bytes);
std::string to_text(Seconds seconds);
std::string to_text(BytesPerSecond rate);
std::string to_text(FlopsPerSecond rate);
std::string to_text(Watts power);

}  // namespace headroom
