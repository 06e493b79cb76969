// Quantities as text with a unit: "80 GiB", "300 GB/s", "10 us", "312 TFLOP/s".
//
// GiB is 2^30 bytes and GB is 10^9, except for GPU memory, where a vendor's GB are GiB. Units are
// case-sensitive and never bits. The space before a unit is optional.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/core/units.hpp"

namespace headroom {

// Value of a text, or the rule that the text breaks, worded to follow the text's place in a message.
template <class T>
using Parsed = std::variant<T, std::string>;

// Parses a finite, non-negative decimal number and a unit. A broken rule names the accepted units.
Parsed<Bytes> parse_bytes(std::string_view text);
// Tag of GPU memory, where "80 GB" is 80 GiB, and MB and TB are binary too. For an "80 GB" H100, nvidia-smi
// shows 81559 MiB, which is 79.65 GiB.
struct DeviceMemory {};
Parsed<Bytes> parse_device_memory(std::string_view text);
Parsed<Seconds> parse_seconds(std::string_view text);
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text);
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);
Parsed<Watts> parse_watts(std::string_view text);

// Returns the shortest text in the largest unit that reads back as the same value. Expects a value that
// parsing accepts.
std::string to_text(Bytes bytes);
std::string to_text(Bytes bytes, DeviceMemory kind);  // for parse_device_memory()
std::string to_text(Seconds seconds);
std::string to_text(BytesPerSecond rate);
std::string to_text(FlopsPerSecond rate);
std::string to_text(Watts power);

// Returns the units of a quantity, largest first.
std::vector<std::string_view> units_of(Bytes);
std::vector<std::string_view> units_of(Seconds);
std::vector<std::string_view> units_of(BytesPerSecond);
std::vector<std::string_view> units_of(FlopsPerSecond);
std::vector<std::string_view> units_of(Watts);

}  // namespace headroom
