// Quantities as text with a unit: "80 GiB", "300 GB/s", "10 us", "312 TFLOP/s".
//
// GiB is 2^30 bytes, GB is 10^9, but for the memory of a GPU, whose vendor's GB are GiB. Units are case-sensitive and are never bits;
// the space before one is optional.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/units.hpp"

namespace headroom {

// The value, or the rule that the text breaks, to be put after the place where the text stood.
template <class T>
using Parsed = std::variant<T, std::string>;

// A text is a finite, non-negative decimal number and a unit. The broken rule names the accepted units.
Parsed<Bytes> parse_bytes(std::string_view text);
// The memory of a GPU: "80 GB" is 80 GiB, and so are MB and TB binary. An H100 of "80 GB" shows 81559 MiB, 79.65 GiB (nvidia-smi).
struct DeviceMemory {};  // says that a field is of this kind
Parsed<Bytes> parse_device_memory(std::string_view text);
Parsed<Seconds> parse_seconds(std::string_view text);
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text);
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);
Parsed<Watts> parse_watts(std::string_view text);

// The shortest text in the largest unit that reads back as the same value. Expects what parsing accepts.
std::string to_text(Bytes bytes);
std::string to_text(Bytes bytes, DeviceMemory kind);  // as parse_device_memory() reads it
std::string to_text(Seconds seconds);
std::string to_text(BytesPerSecond rate);
std::string to_text(FlopsPerSecond rate);
std::string to_text(Watts power);

// The units of such texts, largest first.
std::vector<std::string_view> units_of(Bytes);
std::vector<std::string_view> units_of(Seconds);
std::vector<std::string_view> units_of(BytesPerSecond);
std::vector<std::string_view> units_of(FlopsPerSecond);
std::vector<std::string_view> units_of(Watts);

}  // namespace headroom
