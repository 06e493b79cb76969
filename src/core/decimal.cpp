#include "headroom/core/decimal.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

namespace headroom {
namespace {

using namespace std::string_view_literals;

bool is_figure(char c) { return c >= '0' && c <= '9'; }

// How much of a text is a number as std::from_chars takes it, without its sign; 0 where it begins with none.
std::size_t length_of_digits(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_figure(text[at])) ++at;
    return at - from;
  };
  std::size_t count = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    count += digits();
  }
  if (count == 0) return 0;
  const std::size_t mantissa = at;
  if (at == text.size() || (text[at] != 'e' && text[at] != 'E')) return mantissa;
  ++at;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
  return digits() > 0 ? at : mantissa;
}

// Of "inf", "infinity", "nan" or "nan(7)", in any case.
std::size_t length_of_word(std::string_view text) {
  const auto begins_with = [&](std::string_view word) {
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char x, char y) { return x == (y | 0x20); });
  };
  for (const std::string_view word : {"infinity"sv, "inf"sv}) {
    if (begins_with(word)) return word.size();
  }
  if (!begins_with("nan")) return 0;
  const std::size_t end =
      text.find_first_not_of("0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
                             std::min<std::size_t>(4, text.size()));
  const bool marked = text.size() > 3 && text[3] == '(' && end != std::string_view::npos && text[end] == ')';
  return marked ? end + 1 : 3;
}

}  // namespace

namespace detail {

std::from_chars_result decimal_by_strtod(const char* first, const char* last, double& value) {
  const std::string_view text(first, static_cast<std::size_t>(last - first));
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const std::size_t digits = length_of_digits(text.substr(sign));
  const std::size_t length = digits > 0 ? digits : length_of_word(text.substr(sign));
  if (length == 0) return {first, std::errc::invalid_argument};
  const std::string number(text.substr(0, sign + length));
  const double read = std::strtod(number.c_str(), nullptr);
  const std::string_view mantissa = std::string_view(number).substr(0, number.find_first_of("eE"));
  const bool zero = mantissa.find_first_of("123456789") == std::string_view::npos;
  const char* const end = first + number.size();
  if (digits > 0 && (std::isinf(read) || (read == 0 && !zero))) return {end, std::errc::result_out_of_range};
  value = read;
  return {end, std::errc()};
}

}  // namespace detail

std::from_chars_result decimal_from_chars(const char* first, const char* last, double& value) {
#ifdef __cpp_lib_to_chars
  return std::from_chars(first, last, value);
#else
  return detail::decimal_by_strtod(first, last, value);
#endif
}

}  // namespace headroom
