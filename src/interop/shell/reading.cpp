// `read`, `mapfile` and `readarray`.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/shell/characters.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom::shell {
namespace {

// -a and -ra of `read`, before the name of a list.
bool is_list_option(std::string_view word) { return word.starts_with('-') && word.ends_with('a'); }

}  // namespace

// What a command is given to read by itself: <<EOF, <<< TEXT, < <(COMMAND).
std::optional<Value> Interpreter::text_read_by(const Node& node) {
  for (const Redirection& it : node.redirections) {
    if (it.sign == "<<") return heredoc_of(it);
    if (it.sign == "<<<" || (it.sign == "<" && it.target.raw.starts_with("<("))) return text_of(it.target);
  }
  return std::nullopt;
}

std::optional<Value> Interpreter::next_line() {
  Input& input = inputs_.back();
  const std::string& text = input.text->text();
  if (input.at >= text.size()) return std::nullopt;
  const std::size_t end = std::min(text.find('\n', input.at), text.size());
  Value line;
  line.append(*input.text, input.at, end);
  input.at = end + 1;
  if (line.text().empty()) line = Value("", input.text->place());
  return line;
}

void Interpreter::read_variables(const std::vector<Value>& words) {
  const bool fills_list = words.front().text() != "read";
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& name = words[i].text();
    if (name.starts_with('-') || !is_known(name) || name.empty()) continue;
    Variable variable;
    variable.is_list = variable.is_open = fills_list || is_list_option(words[i - 1].text());
    variable.items[0] = Value(mark(Source::output, "$" + name), here());
    state_.variables.insert_or_assign(name, std::move(variable));
  }
}

// `read -r -d '' NAME <<EOF`: the whole text, or else its first line. Of several names each has a word, and the last the
// rest. `read -a` makes a list of the words, `mapfile` of the lines.
void Interpreter::read_text(const Node& node, const std::vector<Value>& words, const Value& text) {
  const bool reads_lines = words.front().text() != "read";
  bool whole = reads_lines;
  bool fills_list = reads_lines;
  std::string separators = reads_lines ? "\n" : this->separators();
  for (const Assignment& assignment : node.assignments) {
    if (assignment.name == "IFS" && !reads_lines) separators = text_of(assignment.value).text();
  }
  const std::string_view with_value = reads_lines ? "dnOsuCc" : "dinNptu";
  std::size_t skipped = 0;  // lines of mapfile, and how many it takes
  std::size_t most = npos;
  std::vector<std::string> names;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    if (!word.starts_with('-')) {
      names.push_back(word);
      continue;
    }
    fills_list = fills_list || is_list_option(word);
    if (word.size() < 2 || with_value.find(word.back()) == std::string_view::npos || ++i >= words.size())
      continue;
    if (reads_lines && (word.back() == 's' || word.back() == 'n')) {
      std::size_t& count = word.back() == 's' ? skipped : most;
      std::from_chars(words[i].text().data(), words[i].text().data() + words[i].text().size(), count);
      if (word.back() == 'n' && count == 0) count = npos;
    }
    if (word.back() == 'd' && reads_lines) separators = words[i].text();
    if (word.back() == 'd') whole = whole || words[i].empty();
  }
  if (names.empty()) names.emplace_back(reads_lines ? "MAPFILE" : "REPLY");
  if (names.size() > 1 && !fills_list && only_mark(text.text())) return read_variables(words);
  std::size_t end = text.text().size();
  if (!whole) end = std::min(text.text().find('\n'), end);
  while (end > 0 && text.text()[end - 1] == '\n') {
    --end;
    if (reads_lines) break;  // empty lines are items
  }
  const auto is_blank = [&](std::size_t at) {
    const char c = text.text()[at];
    return !reads_lines && (c == ' ' || c == '\t' || c == '\n') && separators.find(c) != std::string::npos;
  };
  std::size_t at = 0;
  // The next word, or what is left.
  const auto next = [&](bool all_that_is_left) {
    while (at < end && is_blank(at)) ++at;
    const std::size_t stop =
        all_that_is_left ? end : std::min(find_separator(text.text(), at, separators), end);
    Value value;
    value.append(text, at, stop);
    at = stop;
    while (at < end && is_blank(at)) ++at;
    if (at < end && separators.find(text.text()[at]) != std::string::npos) ++at;
    return value;
  };
  if (fills_list) {
    Variable list;
    list.is_list = true;
    while (at < end && list.items.size() < most) {
      charge(20);
      Value item = next(false);
      if (skipped > 0 && !only_mark(item.text())) {
        --skipped;
        continue;
      }
      list.is_open = list.is_open || only_mark(item.text());
      list.items.insert_or_assign(std::ssize(list.items), std::move(item));
    }
    state_.variables.insert_or_assign(meant_by(names.front()), std::move(list));
    return;
  }
  for (std::size_t i = 0; i < names.size(); ++i) set(names[i], next(i + 1 == names.size()));
}

}  // namespace headroom::shell
