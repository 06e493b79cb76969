// Tables of text, and the ways to print one: aligned for a screen, whose width decides which columns are shown and what
// wraps; Markdown; CSV.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/names.hpp"

namespace headroom {

enum class Format : std::uint8_t { table, json, csv, markdown };

template <>
inline constexpr std::array<Spelling<Format>, 4> spellings<Format>{{
    {Format::table, "table"},
    {Format::json, "json"},
    {Format::csv, "csv"},
    {Format::markdown, "markdown"},
}};

// How a report is printed. The same reply in the same style is the same text, wherever it goes.
struct Style {
  // A format alone is a style, that of what is piped or written to a file.
  Style(Format chosen = Format::table, std::size_t screen = 100, bool colours = false)  // NOLINT: implicit
      : format(chosen), columns(screen), colour(colours) {}

  Format format;
  std::size_t columns;  // that a line for reading may take
  bool colour;          // of verdicts, for a terminal
  friend bool operator==(const Style&, const Style&) = default;
};

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string name;
  Align align = Align::right;
  // 0: always shown. Where a screen is too narrow for all columns, the one with the largest number is left out first.
  int expendable = 0;
  friend bool operator==(const Column&, const Column&) = default;
};

// Every row has a cell for every column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  friend bool operator==(const Table&, const Table&) = default;
};

// Columns two spaces apart, padded, without trailing spaces and in lines of at most `screen` columns: headings and cells
// of words go on below themselves, then columns are left out and named below the table. A column without any text
// is not shown. Columns that are never left out may still take more.
std::string to_aligned(const Table& table, std::size_t screen = Style().columns);

// A GitHub table; `|` in cells is escaped.
std::string to_markdown(const Table& table);
std::string markdown_row(const std::vector<std::string>& cells);

// RFC 4180 with \n line ends: cells with a comma, quote or newline are quoted.
std::string to_csv(const Table& table);
std::string csv_row(const std::vector<std::string>& cells);

// Text in lines of at most `screen` columns: a longer one goes on below itself, `hang` columns further to the right. A
// command ("  headroom estimate ...") goes on behind a backslash, so that it can be copied.
std::string in_lines(std::string_view text, std::size_t screen, std::size_t hang = 2);

}  // namespace headroom
