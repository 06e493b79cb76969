#include "csv_row.hpp"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headroom/core/decimal.hpp"
#include "text.hpp"

namespace headroom {

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  cells.reserve(static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1);
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find(',', start), line.size());
    cells.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return cells;
}

CsvColumns::CsvColumns(std::string_view header, const std::string& where) {
  for (const std::string_view name : cells_of(header)) {
    const std::size_t place = count_++;
    if (name.starts_with('#')) continue;
    if (name.empty()) throw InputError(where, fmt::format("column {} has no name", place + 1));
    if (!places_.emplace(name, place).second)
      throw InputError(where, fmt::format("column '{}' stands twice", printable(name)));
    names_.push_back(name);
  }
}

bool CsvRow::is_whole() const {
  if (cells_.size() == columns_.count()) return true;
  refuse(fmt::format("must have {} cells, as the header has (found {})", columns_.count(), cells_.size()));
  return false;
}

std::int64_t CsvRow::count(std::string_view name, std::int64_t least, std::int64_t most) const {
  const std::string_view cell = text(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc() && end == cell.data() + cell.size() && value >= least && value <= most)
    return value;
  refuse(fmt::format("{} must be an integer from {} to {} (found '{}')", name, least, most, printable(cell)));
  return least;
}

Seconds CsvRow::time() const {
  for (const TimeColumn& column : time_columns) {
    if (!columns_.has(column.name)) continue;
    const std::string_view cell = text(column.name);
    double value = 0;
    const auto [end, error] = decimal_from_chars(cell.data(), cell.data() + cell.size(), value);
    const bool read = error == std::errc() && end == cell.data() + cell.size();
    if (read && std::isfinite(value) && value > 0) return Seconds(value * column.seconds);
    refuse(fmt::format("{} must be a number above zero (found '{}')", column.name, printable(cell)));
    return Seconds(1);
  }
  return Seconds(1);  // a header without a time is refused
}

void CsvRow::refuse_choice(std::string_view name, const std::vector<std::string_view>& names) const {
  refuse(
      fmt::format("{} must be one of {} (found '{}')", name, fmt::join(names, ", "), printable(text(name))));
}

}  // namespace headroom
