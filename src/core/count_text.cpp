#include "headroom/core/count_text.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <system_error>

namespace headroom {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::string without_commas(std::string_view text) {
  const std::size_t first = std::min(text.find(','), text.size());
  bool groups = first >= 1 && first <= 3 && (text.size() - first) % 4 == 0;
  for (std::size_t i = first; i < text.size(); ++i) {
    groups = groups && ((i - first) % 4 == 0 ? text[i] == ',' : is_digit(text[i]));
  }
  std::string digits(text);
  if (groups) digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  return digits;
}

std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t unit = 1;
  if (text.size() > 1 && is_digit(text[text.size() - 2])) {
    if (text.back() == 'k' || text.back() == 'K') unit = 1024;
    if (text.back() == 'M') unit = std::int64_t{1024} * 1024;
  }
  if (unit > 1) text.remove_suffix(1);
  const std::string digits = without_commas(text);
  std::int64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  if (error == std::errc::invalid_argument || end != last) return std::nullopt;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  if (error == std::errc::result_out_of_range) return digits.front() == '-' ? least : most;
  if (number > most / unit) return most;
  return number < least / unit ? least : number * unit;
}

}  // namespace headroom
