#include "headroom/io/quantity.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "headroom/core/decimal.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// Base units are number * times / over: both exact in a double, so that "10 us" is 1e-5 to the last bit.
struct Unit {
  std::string_view text;
  double times = 1;
  double over = 1;
};

// Largest first. A binary unit stands before its smaller decimal namesake: 80 GiB is not 85.9 GB.
constexpr Unit byte_units[] = {{"TiB", 1024 * gibi}, {"TB", 1e12},  {"GiB", gibi}, {"GB", 1e9}, {"MiB", mebi},
                               {"MB", 1e6},          {"KiB", kibi}, {"KB", 1e3},   {"B"}};
// Writing never takes a decimal name, since the binary one before it is of the same size.
constexpr Unit device_memory_units[] = {{"TiB", 1024 * gibi}, {"TB", 1024 * gibi}, {"GiB", gibi},
                                        {"GB", gibi},         {"MiB", mebi},       {"MB", mebi},
                                        {"KiB", kibi},        {"KB", kibi},        {"B"}};
constexpr Unit second_units[] = {{"s"}, {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9}};
constexpr Unit byte_rate_units[] = {{"TB/s", 1e12}, {"GiB/s", gibi}, {"GB/s", 1e9}, {"MiB/s", mebi},
                                    {"MB/s", 1e6},  {"KiB/s", kibi}, {"KB/s", 1e3}, {"B/s"}};
constexpr Unit flop_rate_units[] = {
    {"PFLOP/s", 1e15}, {"TFLOP/s", 1e12}, {"GFLOP/s", 1e9}, {"MFLOP/s", 1e6}, {"FLOP/s"}};

constexpr Unit watt_units[] = {{"kW", 1e3}, {"W"}};

std::vector<std::string_view> texts(std::span<const Unit> units) {
  std::vector<std::string_view> names;
  for (const Unit& unit : units) names.push_back(unit.text);
  return names;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Units are short, so that a distance between spellings says little: "GB" is not a misspelt "s".
std::string unit_hint(std::string_view name, const std::vector<std::string_view>& accepted) {
  if (name.ends_with("b/s") || name.ends_with("bit/s") || name.ends_with("bps"))
    return " (in bits, 8 of which make a byte)";
  const auto same_letter = [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  };
  for (const std::string_view unit : accepted) {
    if (std::equal(unit.begin(), unit.end(), name.begin(), name.end(), same_letter)) {
      return fmt::format(" (did you mean '{}'?)", unit);
    }
  }
  return name.size() > 2 ? did_you_mean(name, accepted) : std::string();
}

Parsed<double> parse(std::string_view whole, std::span<const Unit> units) {
  const std::string found = fmt::format(" (found \"{}\")", printable(whole));
  const std::vector<std::string_view> accepted = texts(units);
  const std::string_view text = trimmed(whole);

  double number = 0;
  const auto [end, error] = decimal_from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return "number out of range" + found;
  if (error != std::errc()) {
    return fmt::format("must be a number and a unit ({}){}", fmt::join(accepted, ", "), found);
  }
  if (!std::isfinite(number)) return "must be finite" + found;
  if (std::signbit(number)) return "must not be negative" + found;

  const std::string_view name = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const Unit& unit : units) {
    if (unit.text != name) continue;
    const double value = number * unit.times / unit.over;
    if (!std::isfinite(value)) return "number out of range" + found;
    return value;
  }
  if (name.empty()) return fmt::format("needs a unit, one of {}{}", fmt::join(accepted, ", "), found);
  return fmt::format("unknown unit '{}'{}, must be one of {}{}", printable(name), unit_hint(name, accepted),
                     fmt::join(accepted, ", "), found);
}

template <class Q>
Parsed<Q> parse_as(std::string_view text, std::span<const Unit> units) {
  const Parsed<double> parsed = parse(text, units);
  if (const auto* rule = std::get_if<std::string>(&parsed)) return *rule;
  return Q(std::get<double>(parsed));
}

std::string print(double value, std::span<const Unit> units) {
  EXPECTS(std::isfinite(value) && !std::signbit(value));
  constexpr std::size_t longest_readable_number = 10;
  std::string exact;  // what is left when no unit is readable: the first unit that reads back the same
  for (const Unit& unit : units) {
    const double number = value * unit.over / unit.times;
    const std::string digits = fmt::format("{}", number);
    if (!std::isfinite(number) || number * unit.times / unit.over != value) continue;
    std::string text = fmt::format("{} {}", digits, unit.text);
    const bool smallest = unit.text == units.back().text;
    if (number >= 1 && (digits.size() <= longest_readable_number || smallest)) return text;
    if (unit.times == 1 && unit.over == 1) exact = std::move(text);
  }
  return exact;
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) { return parse_as<Bytes>(text, byte_units); }
Parsed<Bytes> parse_device_memory(std::string_view text) {
  return parse_as<Bytes>(text, device_memory_units);
}
Parsed<Seconds> parse_seconds(std::string_view text) { return parse_as<Seconds>(text, second_units); }
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse_as<BytesPerSecond>(text, byte_rate_units);
}
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse_as<FlopsPerSecond>(text, flop_rate_units);
}

Parsed<Watts> parse_watts(std::string_view text) { return parse_as<Watts>(text, watt_units); }

std::string to_text(Bytes bytes) { return print(bytes.count(), byte_units); }
std::string to_text(Bytes bytes, DeviceMemory) { return print(bytes.count(), device_memory_units); }
std::string to_text(Seconds seconds) { return print(seconds.count(), second_units); }
std::string to_text(BytesPerSecond rate) { return print(rate.count(), byte_rate_units); }
std::string to_text(FlopsPerSecond rate) { return print(rate.count(), flop_rate_units); }
std::string to_text(Watts power) { return print(power.count(), watt_units); }

std::vector<std::string_view> units_of(Bytes) { return texts(byte_units); }
std::vector<std::string_view> units_of(Seconds) { return texts(second_units); }
std::vector<std::string_view> units_of(BytesPerSecond) { return texts(byte_rate_units); }
std::vector<std::string_view> units_of(FlopsPerSecond) { return texts(flop_rate_units); }
std::vector<std::string_view> units_of(Watts) { return texts(watt_units); }

}  // namespace headroom
