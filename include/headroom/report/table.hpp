// Tables of text, and the ways to print one: aligned for a terminal, Markdown, CSV.
#pragma once

#include <array>
#include <string>
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

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string name;
  Align align = Align::right;
  friend bool operator==(const Column&, const Column&) = default;
};

// Every row has a cell for every column.
struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  friend bool operator==(const Table&, const Table&) = default;
};

// Columns two spaces apart, padded; no trailing spaces.
std::string to_aligned(const Table& table);

// A GitHub table; `|` in cells is escaped.
std::string to_markdown(const Table& table);
std::string markdown_row(const std::vector<std::string>& cells);

// RFC 4180 with \n line ends: cells with a comma, quote or newline are quoted.
std::string to_csv(const Table& table);
std::string csv_row(const std::vector<std::string>& cells);

}  // namespace headroom
