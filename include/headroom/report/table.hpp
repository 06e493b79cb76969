// Tables of text, and their formats: aligned for a screen, Markdown and CSV. The screen's width decides which
// columns of an aligned table are shown and what wraps.
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

// Style of a printed report. Equal replies in equal styles give equal text, wherever it is printed.
struct Style {
  // Converts a format to the style of output that is piped or written to a file.
  Style(Format chosen = Format::table, std::size_t screen = 100, bool colours = false)  // NOLINT: implicit
      : format(chosen), columns(screen), colour(colours) {}

  Format format;
  std::size_t columns;   // width of a line for readers
  bool colour;           // colours verdicts, for a terminal
  bool verbose = false;  // lists assumptions and all warnings
  bool blocks = false;   // draws bars with Unicode's blocks, for a terminal that has them
  friend bool operator==(const Style&, const Style&) = default;
};

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string name;
  Align align = Align::right;
  // 0: always shown. If a screen is too narrow, the column with the largest number is hidden first.
  int expendable = 0;
  friend bool operator==(const Column&, const Column&) = default;
};

// Table of text cells. Every row has a cell for every column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  friend bool operator==(const Table&, const Table&) = default;
};

// Returns the table with padded columns two spaces apart, without trailing spaces, in lines of at most
// `screen` columns. If the table is too wide, headings and cells of words wrap; then columns are hidden and
// named below the table; a table that is still too wide is turned on its side, a line for each cell. A column
// without any text is not shown. Only a word that is wider than `screen` exceeds it.
std::string to_aligned(const Table& table, std::size_t screen = Style().columns);

// Returns a GitHub table; `|` in cells is escaped.
std::string to_markdown(const Table& table);
std::string markdown_row(const std::vector<std::string>& cells);

// Returns CSV of RFC 4180 with \n line ends: cells with a comma, quote or newline are quoted.
std::string to_csv(const Table& table);
std::string csv_row(const std::vector<std::string>& cells);

// Wraps text into lines of at most `screen` columns. Continuation lines are indented by `hang` more columns.
// A command ("  headroom estimate ...") continues after a backslash, so that it can be copied.
std::string in_lines(std::string_view text, std::size_t screen, std::size_t hang = 2);

}  // namespace headroom
