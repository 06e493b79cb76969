#include "headroom/core/reading.hpp"

#include <algorithm>
#include <charconv>

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
  std::int64_t number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc::invalid_argument || end != last) return "must be a whole number" + not_this(text);
  if (error == std::errc::result_out_of_range || number < least || number > most_count) {
    return "must be between " + std::to_string(least) + " and " + std::to_string(most_count) + not_this(text);
  }
  value = number;
  return {};
}

}  // namespace headroom
