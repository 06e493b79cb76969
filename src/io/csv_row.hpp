// Tables as CSV whose header names their columns, in any order. A column whose name begins with # is a note, which nothing reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"
#include "headroom/core/units.hpp"
#include "sample_text.hpp"

namespace headroom {

std::vector<std::string_view> cells_of(std::string_view line);

// Where each column stands in a line.
class CsvColumns {
 public:
  // Throws InputError where a column stands twice or has no name.
  CsvColumns(std::string_view header, const std::string& where);

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool has(std::string_view name) const { return places_.contains(name); }
  [[nodiscard]] std::size_t place(std::string_view name) const { return places_.at(name); }
  // Without notes, in the order of the header.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }

 private:
  std::map<std::string_view, std::size_t> places_;
  std::vector<std::string_view> names_;
  std::size_t count_ = 0;
};

// Reads the cells of a line, noting what is wrong with them. An empty cell is a column that the line has not.
class CsvRow {
 public:
  CsvRow(std::string_view line, std::size_t number, const CsvColumns& columns, LineProblems& problems)
      : cells_(cells_of(line)), number_(number), columns_(columns), problems_(problems) {}

  // Whether it has as many cells as the header.
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] bool has(std::string_view name) const {
    return columns_.has(name) && !cells_[columns_.place(name)].empty();
  }
  // Empty where the line has none.
  [[nodiscard]] std::string_view text(std::string_view name) const {
    return columns_.has(name) ? cells_[columns_.place(name)] : std::string_view();
  }

  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::int64_t count(std::string_view name, std::int64_t least, std::int64_t most,
                                   std::int64_t without) const {
    return has(name) ? count(name, least, most) : without;
  }
  [[nodiscard]] bool flag(std::string_view name, bool without) const {
    return has(name) ? count(name, 0, 1) == 1 : without;
  }
  // One of some values of an enumeration.
  template <class E, std::size_t N>
  [[nodiscard]] E choice(std::string_view name, const std::array<E, N>& values, E without) const {
    if (!has(name)) return without;
    std::vector<std::string_view> names;
    names.reserve(N);
    for (const E value : values) {
      if (name_of(value) == text(name)) return value;
      names.push_back(name_of(value));
    }
    refuse_choice(name, names);
    return without;
  }
  // Of the one column of a time that the line has: milliseconds, microseconds or seconds.
  [[nodiscard]] Seconds time() const;

  void refuse(std::string rule) const { problems_.report(number_, std::move(rule)); }

 private:
  void refuse_choice(std::string_view name, const std::vector<std::string_view>& names) const;

  std::vector<std::string_view> cells_;
  std::size_t number_;
  const CsvColumns& columns_;
  LineProblems& problems_;
};

// A column of a time, and what its numbers are of a second.
struct TimeColumn {
  std::string_view name;
  double seconds = 1;
};
inline constexpr std::array<TimeColumn, 3> time_columns{
    {{"milliseconds", 1e-3}, {"microseconds", 1e-6}, {"seconds", 1}}};

}  // namespace headroom
