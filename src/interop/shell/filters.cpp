// What commands print, and filters by which scripts count the items of a list: $(echo $GPUS | tr ',' '\n' | wc -l).
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/shell/expansion.hpp"
#include "interop/shell/regex.hpp"

namespace headroom::shell {
namespace {

// A set of tr that is one character, also as "\n"; none: it is another.
std::optional<char> one_character(const std::string& set) {
  if (set.size() == 1) return set.front();
  if (set == "\\n") return '\n';
  if (set == "\\t") return '\t';
  return std::nullopt;
}

std::vector<std::string> fields_in(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == separator)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

std::size_t words_in(std::string_view text) {
  std::size_t count = 0;
  bool within = false;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank && !within) ++count;
    within = !blank;
  }
  return count;
}

// -d, and -f1 of cut; -F, of awk: the value of an option, in its word or the next.
std::optional<std::string> option_in(const std::vector<Value>& words, std::string_view option) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    if (word == option && i + 1 < words.size()) return words[i + 1].text();
    if (word.starts_with(option) && word.size() > option.size()) return word.substr(option.size());
  }
  return std::nullopt;
}

// The text without the newline that ends it.
std::string_view only_line(std::string_view text) {
  return text.substr(0, text.size() - (text.ends_with('\n') ? 1 : 0));
}

std::string line_of(std::size_t count) { return std::to_string(count) + '\n'; }

std::optional<std::string> cut(const std::vector<Value>& words, const std::string& text) {
  const auto separator = option_in(words, "-d");
  const std::string number = option_in(words, "-f").value_or("");
  std::size_t field = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), field);
  const bool is_one = error == std::errc() && end == number.data() + number.size() && field > 0;
  if (!separator || separator->size() != 1 || !is_one) return std::nullopt;
  const std::string_view line = only_line(text);
  if (line.find('\n') != std::string_view::npos) return std::nullopt;
  const std::vector<std::string> fields = fields_in(line, separator->front());
  const std::string one = fields.size() == 1       ? fields.front()
                          : field <= fields.size() ? fields[field - 1]
                                                   : std::string();
  return one + '\n';
}

// What a filter makes of a text: tr, wc, cut, awk's {print NF}. None: only a run knows.
std::optional<std::string> filtered(const std::vector<Value>& words, const std::string& text) {
  const bool known =
      std::all_of(words.begin(), words.end(), [](const Value& word) { return is_known(word.text()); });
  if (!known || words.size() < 2) return std::nullopt;
  const std::string& name = words.front().text();
  const std::string& first = words[1].text();
  if (name == "tr" && words.size() == 3) {
    std::string result = text;
    if (const auto removed = first == "-d" ? one_character(words[2].text()) : std::nullopt) {
      std::erase(result, *removed);
      return result;
    }
    const auto from = one_character(first);
    const auto to = one_character(words[2].text());
    if (!from || !to) return std::nullopt;
    std::replace(result.begin(), result.end(), *from, *to);
    return result;
  }
  if (name == "wc" && first == "-l")
    return line_of(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
  if (name == "wc" && first == "-w") return line_of(words_in(text));
  if (name == "cut") return cut(words, text);
  const std::string_view line = only_line(text);
  if (name == "awk" && words.back().text() == "{print NF}" && line.find('\n') == std::string_view::npos) {
    const auto separator = option_in(words, "-F");
    if (!separator) return line_of(words_in(line));
    if (separator->size() == 1) return line_of(line.empty() ? 0 : fields_in(line, separator->front()).size());
  }
  return std::nullopt;
}

}  // namespace

std::size_t work_of_grep(const std::string& text) {
  std::size_t longest = 0;
  std::size_t start = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && text[at] != '\n') continue;
    longest = std::max(longest, at - start);
    start = at + 1;
  }
  return text.size() * (longest / 8 + 8);
}

std::optional<bool> grep_finds(const std::vector<Value>& words, const std::string& text) {
  const bool known = is_known(text) && std::all_of(words.begin(), words.end(),
                                                   [](const Value& word) { return is_known(word.text()); });
  if (!known || words.empty()) return std::nullopt;
  const std::string& name = words.front().text();
  if (name != "grep" && name != "egrep" && name != "fgrep") return std::nullopt;
  std::string options = name == "egrep" ? "E" : name == "fgrep" ? "F" : "";
  std::optional<std::string> pattern;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    if (word == "--") continue;
    if (word == "-e" && i + 1 < words.size()) {
      if (pattern) return std::nullopt;
      pattern = words[++i].text();
    } else if (word.size() > 1 && word[0] == '-' && !pattern && words[i - 1].text() != "--") {
      options += word == "--quiet" ? "q" : word.substr(1);
    } else if (!pattern) {
      pattern = word;
    } else {
      return std::nullopt;  // a file
    }
  }
  const auto has = [&](char option) { return options.find(option) != std::string::npos; };
  if (!pattern || options.find_first_not_of("qEFivwxsco") != std::string::npos ||
      pattern->find('\n') != std::string::npos)
    return std::nullopt;
  if (text.empty()) return false;  // no lines
  std::string expression = *pattern;
  if (has('F')) {
    expression.clear();
    for (const char c : *pattern) {
      if (std::string_view("^$.[]()*+?{}|\\").find(c) != std::string_view::npos) expression += '\\';
      expression += c;
    }
  }
  const bool extended = has('E') || has('F') || has('w') || has('x');
  if (extended && !has('E') && !has('F') && pattern->find_first_of("\\()+?{}|") != std::string::npos)
    return std::nullopt;  // means something else in a basic expression
  if (has('w')) expression = "(^|[^[:alnum:]_])(" + expression + ")([^[:alnum:]_]|$)";
  if (has('x')) expression = "^(" + expression + ")$";
  const auto regex = Regex::compile(expression, {.extended = extended, .ignores_case = has('i')});
  if (!regex) return std::nullopt;
  const std::vector<std::string> lines = fields_in(only_line(text), '\n');
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return regex->matches(line) != has('v'); });
}

// What a command prints, or several with pipes between them; none: only a run knows.
std::optional<std::string> Expansion::printed_by(const Script& script, const Node& command) {
  if (command.kind == Kind::pipeline) {
    std::optional<std::string> text = printed_by(script, script.nodes[command.children.front()]);
    for (std::size_t i = 1; text && i < command.children.size(); ++i) {
      const Node& filter = script.nodes[command.children[i]];
      const bool plain = filter.kind == Kind::simple && filter.assignments.empty() && is_known(*text);
      shell_.charge(text->size());
      text = plain ? filtered(words_of(filter), *text) : std::nullopt;
    }
    return text;
  }
  if (command.kind != Kind::simple || !command.assignments.empty()) return std::nullopt;
  const std::vector<Value> words = words_of(command);
  if (words.empty() || words.front().text() != "expr") {
    std::optional<std::string> text = shell_.printed(words);
    const bool ends_line = !words.empty() && words.front().text() != "printf" &&
                           !(words.size() > 1 && words[1].text().starts_with("-n"));
    if (text && ends_line && !text->ends_with('\n')) *text += '\n';
    return text;
  }
  std::string expression;
  // Numbers and signs alone: = and : compare and match texts, which arithmetic would not.
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i].text();
    const bool is_sign = word.size() == 1 && std::string_view("+-*/%()").find(word) != std::string_view::npos;
    const std::size_t first = word.starts_with('-') ? 1 : 0;
    const bool is_number =
        word.size() > first && word.find_first_not_of("0123456789", first) == std::string::npos;
    if (!is_sign && !is_number && is_known(word)) return std::nullopt;
    expression += " " + word;
  }
  return shell_.number_of(expression).text();
}

std::vector<Value> Expansion::words_of(const Node& command) {
  std::vector<Value> words;
  for (const Word& word : command.words) {
    Expansion of(shell_, Mode::fields);
    of.add(word.raw, at_.line, 0);
    for (Value& field : of.fields()) words.push_back(std::move(field));
  }
  return words;
}

}  // namespace headroom::shell
