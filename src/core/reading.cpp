#include "headroom/core/reading.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "headroom/core/count_text.hpp"

namespace headroom {

std::vector<std::string_view> parts_of(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t end = std::min(list.find(separator, from), list.size());
    parts.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return parts;
}

std::string not_this(std::string_view text) {
  constexpr std::size_t shown = 40;
  return ", not '" + std::string(text.substr(0, shown)) + "'";
}

std::string read_count(std::string_view text, std::int64_t& value, std::int64_t least) {
  const std::optional<std::int64_t> number = count_of(text);
  if (!number) return "must be a whole number" + not_this(text);
  if (*number < least || *number > most_count) {
    return "must be between " + std::to_string(least) + " and " + std::to_string(most_count) + not_this(text);
  }
  value = *number;
  return {};
}

namespace {

constexpr double most_amount = 1e18;

}  // namespace

std::string read_amount(std::string_view text, double& value) {
  constexpr std::string_view suffixes = "KMBT";
  const std::size_t figures = std::min(text.find_first_not_of("0123456789,"), text.size());
  const std::string plain = without_commas(text.substr(0, figures)) + std::string(text.substr(figures));
  double number = 0;
  const char* const last = plain.data() + plain.size();
  const auto [end, error] = std::from_chars(plain.data(), last, number);
  const std::size_t suffix = end + 1 == last ? suffixes.find(*end) : std::string_view::npos;
  const bool read = error == std::errc() && (end == last || suffix != std::string_view::npos);
  if (read && suffix != std::string_view::npos) number *= std::pow(1000.0, static_cast<double>(suffix) + 1);
  if (!read || !(number >= 1 && number <= most_amount))
    return "must be a number from 1 to 1e18, such as 300B or 1.4T" + not_this(text);
  value = number;
  return {};
}

std::string read_number(std::string_view text, double& value, double least) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || !(number >= least && number <= most_amount)) {
    std::array<char, 32> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), least);
    return "must be a number of at least " + std::string(digits.data(), written.ptr) + not_this(text);
  }
  value = number;
  return {};
}

std::string read_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example,
                           double& value) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (error == std::errc() && unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.text == unit; });
  const double product = error == std::errc() && found != units.end() ? number * found->base_units : 0;
  if (!(product > 0 && product <= most_amount))
    return "must be a positive number such as " + std::string(example) + not_this(text);
  value = product;
  return {};
}

}  // namespace headroom
