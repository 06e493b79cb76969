#include "headroom/report/table.hpp"

#include <algorithm>

namespace headroom {
namespace {

// Columns on the screen that UTF-8 text takes, which all in use here is: one for each code point.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string spaces(width - std::min(width, width_of(text)), ' ');
  return align == Align::left ? text + spaces : spaces + text;
}

std::string escaped_for_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string escaped_for_csv(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  for (const Column& column : table.columns) result.push_back(column.name);
  return result;
}

// A table for reading is no wider than this: the last column, if it holds words, goes on below itself.
constexpr std::size_t widest = 100;
constexpr std::size_t least_last = 30;  // columns left for it, however wide the others are

// The text in lines of at most `width` columns, broken at spaces.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, end - from);
    const std::size_t with_word = width_of(lines.back()) + 1 + width_of(word);
    if (lines.back().empty()) {
      lines.back() = word;
    } else if (with_word <= width) {
      lines.back() += ' ' + word;
    } else {
      lines.push_back(word);
    }
    from = end + 1;
  }
  return lines;
}

}  // namespace

std::string to_aligned(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    widths.push_back(width_of(table.columns[i].name));
    for (const auto& row : table.rows) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += (i > 0 ? "  " : "") + padded(cells[i], widths[i], table.columns[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + 2;
  const bool words = !table.columns.empty() && table.columns.back().align == Align::left;
  const std::size_t room = std::max(widest - std::min(widest, before_last), least_last);
  append(names(table));
  for (const auto& row : table.rows) {
    if (!words || widths.back() <= room) {
      append(row);
      continue;
    }
    std::vector<std::string> cells = row;
    for (std::string& line : lines_of(row.back(), room)) {
      cells.back() = std::move(line);
      append(cells);
      std::fill(cells.begin(), cells.end(), "");
    }
  }
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += ' ' + escaped_for_markdown(cell) + " |";
  return text + '\n';
}

std::string to_markdown(const Table& table) {
  std::string text = markdown_row(names(table)) + '|';
  for (const Column& column : table.columns) text += column.align == Align::left ? "---|" : "---:|";
  text += '\n';
  for (const auto& row : table.rows) text += markdown_row(row);
  return text;
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i > 0 ? "," : "") + escaped_for_csv(cells[i]);
  return text + '\n';
}

std::string to_csv(const Table& table) {
  std::string text = csv_row(names(table));
  for (const auto& row : table.rows) text += csv_row(row);
  return text;
}

}  // namespace headroom
