#include "interop/launch_lines.hpp"

#include <algorithm>
#include <cctype>

namespace headroom {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

}  // namespace

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::size_t find_word(std::string_view line, std::string_view word, std::size_t from) {
  if (word.empty()) return std::string_view::npos;
  for (std::size_t at = line.find(word, from); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const bool starts = at == 0 || !in_word(line[at - 1]);
    const std::size_t end = at + word.size();
    if (starts && (end == line.size() || !in_word(line[end]))) return at;
  }
  return std::string_view::npos;
}

std::string indent_of(std::string_view line) {
  return std::string(line.substr(0, std::min(line.find_first_not_of(" \t"), line.size())));
}

bool is_continued(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && line[last] == '\\';
}

std::string_view line_end(std::string_view line) { return line.ends_with("\r\n") ? "\r\n" : "\n"; }

void erase_words(Lines& lines, std::size_t line, std::size_t at, std::size_t size) {
  std::string& left = lines[line];
  const bool ends_command = !is_continued(left);
  left.erase(at, size);
  if (at < left.size() && left[at] == ' ') left.erase(at, 1);
  if (left.find_first_not_of(" \t\r\n\\,") != std::string::npos) return;
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
  if (!ends_command || line == 0 || !is_continued(lines[line - 1])) return;
  std::string& last = lines[line - 1];
  const std::string end(line_end(last));
  last.erase(last.find_last_not_of(" \t\r\n\\") + 1);
  last += end;
}

void erase_switch(Lines& lines, std::string_view flag) {
  for (std::size_t line = lines.size(); line-- > 0;) {
    const std::size_t at = lines[line].find(flag);
    if (at != std::string::npos) erase_words(lines, line, at, flag.size());
  }
}

std::vector<std::string> variables_in(std::string_view line) {
  std::vector<std::string> names;
  for (std::size_t at = line.find('$'); at != std::string_view::npos; at = line.find('$', at + 1)) {
    std::size_t start = at + 1;
    if (start < line.size() && line[start] == '{') ++start;
    std::size_t end = start;
    while (end < line.size() && in_word(line[end]) && line[end] != '.') ++end;
    if (end > start) names.emplace_back(line.substr(start, end - start));
  }
  return names;
}

}  // namespace headroom
