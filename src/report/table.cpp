#include "headroom/report/table.hpp"

#include <algorithm>
#include <numeric>

namespace headroom {
namespace {

// The end of what stands at `from`: an escape sequence that sets a colour, which takes no room, or one byte.
std::size_t colour_end(std::string_view text, std::size_t from) {
  if (!text.substr(from).starts_with("\x1b[")) return from;
  const std::size_t end = text.find('m', from);
  return end == std::string_view::npos ? from : end + 1;
}

// Columns on the screen that UTF-8 text takes, which all in use here is: one for each code point.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t end = colour_end(text, i); end > i) {
      i = end;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) ++width;
    ++i;
  }
  return width;
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

// Splits a text into words where a line may end: at spaces, and within a long word after a comma or a slash,
// or else an underscore.
std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::size_t long_list = 30;
  constexpr std::size_t longest_word = 38;
  std::vector<std::string_view> words;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = std::min(text.find(' ', from), text.size());
    if (end - from > long_list) {
      const std::string_view part = text.substr(from, std::min(end - from, 2 * long_list) - 1);
      std::size_t joint = part.find_last_of(",/");  // or npos, which is beyond all
      if (joint > longest_word && end - from > longest_word)
        joint = part.substr(0, longest_word).find_last_of(",/_");
      if (joint != std::string_view::npos) end = from + joint + 1;
    }
    words.push_back(text.substr(from, end - from));
    from = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return words;
}

// Returns whether a space stood between two neighbouring words of a text.
bool apart(std::string_view one, std::string_view next) { return one.data() + one.size() != next.data(); }

// Returns the text in lines of at most `width` columns, the first line of `first`, or of one word if that is
// wider. There is always a line.
std::vector<std::string> lines_of(std::string_view text, std::size_t first, std::size_t width) {
  if (width_of(text) <= first) return {std::string(text)};
  std::vector<std::string> lines(1);
  std::string_view before;
  for (const std::string_view word : words_of(text)) {
    const bool space = !lines.back().empty() && apart(before, word);
    const std::size_t room = lines.size() == 1 ? first : width;
    if (lines.back().empty() || width_of(lines.back()) + (space ? 1 : 0) + width_of(word) <= room) {
      lines.back().append(space ? " " : "").append(word);
    } else {
      lines.emplace_back(word);
    }
    before = word;
  }
  return lines;
}

std::size_t widest_word(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string_view word : words_of(text)) widest = std::max(widest, width_of(word));
  return widest;
}

// A column of a table that is laid out.
struct Place {
  std::size_t column = 0;
  std::size_t width = 0;  // as long as nothing wraps; later what it is given
  std::size_t least = 0;  // that it can be given
};

constexpr std::size_t gap = 2;
constexpr std::size_t usual_words = 16;  // columns left for a text, as long as others can be hidden instead

template <std::size_t Place::*Width>
std::size_t line_width(const std::vector<Place>& places) {
  return std::accumulate(places.begin(), places.end(), std::size_t{0},
                         [](std::size_t sum, const Place& place) { return sum + place.*Width + gap; }) -
         std::min(places.size(), std::size_t{1}) * gap;
}

// Every column that says something, with the room that it wants, and of texts at least `words` if they have as much.
std::vector<Place> places_of(const Table& table, std::size_t words) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    std::size_t cells = 0;
    std::size_t word = 0;
    for (const auto& row : table.rows) {
      cells = std::max(cells, width_of(row[i]));
      word = std::max(word, widest_word(row[i]));
    }
    if (cells == 0 && !table.rows.empty()) continue;
    const std::size_t body = column.align == Align::right ? cells : std::min(cells, std::max(word, words));
    places.push_back({.column = i,
                      .width = std::max(cells, width_of(column.name)),
                      .least = std::max(body, widest_word(column.name))});
  }
  return places;
}

// Hides columns until the others fit on the screen. Returns the names of hidden columns.
std::vector<std::string> leave_out(const Table& table, std::size_t screen, std::vector<Place>& places) {
  std::vector<std::string> names;
  while (line_width<&Place::least>(places) > screen) {
    // Of columns that matter alike the last one.
    const auto next =
        std::max_element(places.begin(), places.end(), [&](const Place& one, const Place& other) {
          return table.columns[one.column].expendable <= table.columns[other.column].expendable;
        });
    if (next == places.end() || table.columns[next->column].expendable == 0) break;
    names.push_back(table.columns[next->column].name);
    places.erase(next);
  }
  return names;
}

// Narrows headings above numbers, then texts, each time the widest, until the line fits on the screen.
void narrow(const Table& table, std::size_t screen, std::vector<Place>& places) {
  for (const Align align : {Align::right, Align::left}) {
    for (std::size_t width = line_width<&Place::width>(places); width > screen; --width) {
      Place* widest = nullptr;
      for (Place& place : places) {
        if (table.columns[place.column].align != align || place.width <= place.least) continue;
        if (widest == nullptr || place.width > widest->width) widest = &place;
      }
      if (widest == nullptr) break;
      --widest->width;
    }
  }
}

// A line for each cell, of a table that no screen of this width has room for.
std::string on_its_side(const Table& table, std::size_t screen) {
  std::string text;
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i].empty()) continue;
      const std::string& name = table.columns[i].name;
      text += in_lines((i > 0 ? "  " : "") + name + (name.empty() ? "" : ": ") + row[i] + '\n', screen);
    }
  }
  return text;
}

enum class Side : std::uint8_t { top, bottom };  // where cells of fewer lines than their neighbours stand

std::string row_text(const Table& table, const std::vector<std::string>& cells,
                     const std::vector<Place>& places, Side side) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (const Place& place : places) {
    columns.push_back(lines_of(cells[place.column], place.width, place.width));
    height = std::max(height, columns.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::string whole;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t above = side == Side::bottom ? height - columns[i].size() : 0;
      const bool here = line >= above && line - above < columns[i].size();
      whole += (i > 0 ? std::string(gap, ' ') : std::string()) +
               padded(here ? columns[i][line - above] : "", places[i].width,
                      table.columns[places[i].column].align);
    }
    whole.erase(whole.find_last_not_of(' ') + 1);
    text += whole + '\n';
  }
  return text;
}

}  // namespace

std::string to_aligned(const Table& table, std::size_t screen) {
  std::vector<Place> places = places_of(table, usual_words);
  const std::size_t wanted = line_width<&Place::least>(places);
  std::vector<std::string> left_out = leave_out(table, screen, places);
  if (line_width<&Place::least>(places) > screen) {
    places = places_of(table, 1);
    left_out = leave_out(table, screen, places);
  }
  if (line_width<&Place::least>(places) > screen) return on_its_side(table, screen);
  narrow(table, screen, places);
  std::string text = row_text(table, names(table), places, Side::bottom);
  for (const auto& row : table.rows) text += row_text(table, row, places, Side::top);
  if (left_out.empty()) return text;
  std::string note = "Hidden columns:";
  for (const std::string& name : left_out) note += (&name == &left_out.front() ? " " : ", ") + name;
  return text + in_lines(note + " (--columns " + std::to_string(wanted) + ")\n", screen);
}

namespace {

// Stands for a space that keeps a flag and its value on one line, and words in quotes, until the text is in
// lines.
constexpr char kept_space = '\x1f';

std::string with_values_kept(std::string_view command) {
  std::string text(command);
  bool quoted = false;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    quoted = quoted != (text[i] == '\'');
    if (text[i] == ' ' && (quoted || text[i + 1] != '-')) text[i] = kept_space;
  }
  return text;
}

}  // namespace

std::string in_lines(std::string_view text, std::size_t screen, std::size_t hang) {
  constexpr std::size_t command_hang = 2;
  std::string result;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line = text.substr(from, end - from);
    const bool ended = end < text.size();
    from = end + 1;
    if (width_of(line) <= screen) {
      result.append(line).append(ended ? "\n" : "");
      continue;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const bool command = line.substr(indent).starts_with("headroom ");
    const std::size_t below = indent + (command ? command_hang : hang);
    const std::size_t room = screen - std::min(screen, command ? std::string_view(" \\").size() : 0);
    const auto behind = [&](std::size_t start) { return room > start ? room - start : 1; };
    const std::string words =
        command ? with_values_kept(line.substr(indent)) : std::string(line.substr(indent));
    std::vector<std::string> lines = lines_of(words, behind(indent), behind(below));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      std::replace(lines[i].begin(), lines[i].end(), kept_space, ' ');
      lines[i].erase(lines[i].find_last_not_of(' ') + 1);
      result.append(i > 0 ? below : indent, ' ').append(lines[i]);
      if (command && i + 1 < lines.size()) result += " \\";
      if (ended || i + 1 < lines.size()) result += '\n';
    }
  }
  return result;
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
