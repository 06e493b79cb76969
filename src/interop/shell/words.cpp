#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "interop/shell/expansion.hpp"

namespace headroom::shell {

namespace {

// The words of "1..8" or "a,b"; none: it is no such list.
std::vector<std::string> brace_items(std::string_view inside) {
  std::vector<std::string> items;
  if (const std::size_t dots = inside.find(".."); dots != npos && inside.find(',') == npos) {
    std::int64_t from = 0;
    std::int64_t to = 0;
    const std::string_view last = inside.substr(dots + 2);
    const auto [end, error] = std::from_chars(inside.data(), inside.data() + dots, from);
    const auto [last_end, last_error] = std::from_chars(last.data(), last.data() + last.size(), to);
    constexpr std::int64_t most = 10'000;
    if (error != std::errc() || last_error != std::errc() || end != inside.data() + dots ||
        last_end != last.data() + last.size() || std::abs(from) > most * most || std::abs(to) > most * most ||
        std::abs(to - from) > most)
      return {};
    for (std::int64_t i = from;; i += from <= to ? 1 : -1) {
      items.push_back(std::to_string(i));
      if (i == to) return items;
    }
  }
  while (true) {
    const std::size_t comma = find_unquoted(inside, ',');
    items.emplace_back(inside.substr(0, comma));
    if (comma == npos) break;
    inside.remove_prefix(comma + 1);
  }
  return items.size() > 1 ? items : std::vector<std::string>();
}

}  // namespace

std::vector<std::string> brace_words(const std::string& raw) {
  constexpr std::size_t most = 10'000;
  std::vector<std::string> words{raw};
  for (std::size_t i = 0; i < words.size() && words.size() < most;) {
    const std::string word = words[i];
    std::size_t open = 0;
    std::vector<std::string> items;
    std::size_t close = 0;
    while (open < word.size() && items.empty()) {
      if (word[open] == '{') {
        close = word.find_first_of("{}'\"", open + 1);
        if (close != npos && word[close] == '}')
          items = brace_items(std::string_view(word).substr(open + 1, close - open - 1));
        if (items.empty()) ++open;
        continue;
      }
      const std::size_t end = end_of_part(word, open);
      if (end == npos) break;
      open = end;
    }
    if (items.empty()) {
      ++i;
      continue;
    }
    for (std::string& item : items) item = word.substr(0, open) + item + word.substr(close + 1);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), items.begin(), items.end());
  }
  return words;
}

std::vector<Value> Interpreter::fields_of(const Word& word) {
  const bool braces = word.raw.find('{') != npos;
  std::vector<Value> fields;
  for (const std::string& raw : braces ? brace_words(word.raw) : std::vector<std::string>{word.raw}) {
    Expansion expansion(*this, Expansion::Mode::fields);
    expansion.add(raw, word.line, word.offset);
    for (Value& field : expansion.fields()) fields.push_back(std::move(field));
  }
  return fields;
}

std::vector<Value> Interpreter::fields_of(const std::vector<Word>& words) {
  std::vector<Value> fields;
  for (const Word& word : words) {
    for (Value& field : fields_of(word)) fields.push_back(std::move(field));
  }
  return fields;
}

Value Interpreter::text_of(const Word& word) {
  Expansion expansion(*this, Expansion::Mode::text);
  expansion.add(word.raw, word.line, word.offset);
  return expansion.text();
}

// What only a run knows is split there, unless it is in quotes: "${NAME[@]}" is a list again. A pattern
// stands for the files that a run finds.
bool Interpreter::is_open(const Word& word, const Value& field) {
  for (const char sign : {'*', '?'}) {
    const std::size_t at = find_unquoted(word.raw, sign);
    if (at != npos && (at == 0 || word.raw[at - 1] != '$')) return true;
  }
  const bool is_quoted = word.raw.starts_with('"') && word.raw.find("[@]}") == std::string::npos;
  return !is_quoted && only_mark(field.text());
}

Value Interpreter::pattern_of(const Word& word) {
  Expansion expansion(*this, Expansion::Mode::pattern);
  expansion.add(word.raw, word.line, word.offset);
  return expansion.text();
}

Value Interpreter::regex_of(const Word& word) {
  Expansion expansion(*this, Expansion::Mode::regex);
  expansion.add(word.raw, word.line, word.offset);
  return expansion.text();
}

Value Interpreter::heredoc_of(const Redirection& redirection) {
  const Word& text = redirection.target;
  if (redirection.is_literal) return Value(text.raw, place_of(text.line, text.offset));
  Expansion expansion(*this, Expansion::Mode::text);
  expansion.add(text.raw, text.line, text.offset, true);
  return expansion.text();
}

}  // namespace headroom::shell
