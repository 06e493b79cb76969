#include "interop/shell/expansion.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "interop/shell/characters.hpp"

namespace headroom::shell {
namespace {

constexpr std::size_t longest_value = 1 << 20;

char escaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    default: return c;
  }
}

std::string upper_or_lower(std::string text, std::string_view operation) {
  const bool all = operation.size() > 1;
  const bool upper = operation.front() == '^';
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (!all) break;
  }
  return text;
}

}  // namespace

void Expansion::add_literal(std::string_view text, Place at, bool quoted) {
  if (splits_literals_ && !quoted && mode_ == Mode::fields)
    return add_value(Value(std::string(text), at), false);
  if (quoted) has_current_ = true;
  if (text.empty()) return;
  has_current_ = true;
  if (!quoted || (mode_ != Mode::pattern && mode_ != Mode::regex)) return current_.append(text, at);
  const std::string_view special = mode_ == Mode::regex ? "^$.[]()*+?{}|\\" : "*?[]\\";
  std::string plain;
  for (const char c : text) {
    if (special.find(c) != npos) plain += '\\';
    plain += c;
  }
  current_.append(plain, at);
}

void Expansion::end_field() {
  if (has_current_) done_.push_back(std::exchange(current_, Value()));
  current_ = Value();
  has_current_ = false;
}

void Expansion::add_value(const Value& value, bool quoted) {
  shell_.charge(value.text().size());
  if (current_.text().size() + value.text().size() > longest_value)
    shell_.fail(fmt::format("makes a text of more than {} characters", longest_value));
  if (quoted) has_current_ = true;
  if ((mode_ == Mode::pattern || mode_ == Mode::regex) && quoted)
    return add_literal(value.text(), value.place(), true);
  if (quoted || mode_ != Mode::fields) {
    if (!value.empty()) has_current_ = true;
    current_.append(value);
    return;
  }
  add_split(value);
}

// Splits an unquoted value at the characters of IFS. Blanks among them count as one; each other ends a field, also an
// empty one: `1,,2` has three.
void Expansion::add_split(const Value& value) {
  const std::string separators = shell_.separators();
  const std::string& text = value.text();
  const auto separates = [&](std::size_t at) { return find_separator(text, at, separators) == at; };
  std::size_t at = 0;
  const auto skip_blanks = [&] {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n') && separates(at))
      ++at;
  };
  while (at < text.size()) {
    if (const std::size_t end = find_separator(text, at, separators); end > at) {
      current_.append(value, at, end);
      has_current_ = true;
      at = end;
      continue;
    }
    const bool ends_field = has_current_;
    end_field();
    skip_blanks();
    if (at == text.size() || !separates(at)) continue;
    if (!ends_field) done_.emplace_back();
    ++at;
    skip_blanks();
  }
}

void Expansion::add_values(const std::vector<Value>& values, bool quoted, bool joins) {
  const bool separate = mode_ == Mode::fields && !(quoted && joins);
  const bool by_separator = joins && (quoted || mode_ != Mode::fields);
  const std::string joint = by_separator ? shell_.separators().substr(0, 1) : " ";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0 && separate) end_field();
    if (i > 0 && !separate) current_.append(joint, values[i].place());
    add_value(values[i], quoted);
  }
}

std::string Expansion::pattern(std::string_view raw) {
  Expansion of(shell_, Mode::pattern);
  of.add(raw, at_.line, 0);
  return of.current_.text();
}

std::string Expansion::text_of(std::string_view raw) {
  Expansion of(shell_, Mode::text);
  of.add(raw, at_.line, 0);
  return of.current_.text();
}

void Expansion::add(std::string_view raw, std::int64_t line, std::size_t offset, bool quoted) {
  shell_.charge(raw.size());
  const bool outermost = ++shell_.depth_ < 200;
  if (!outermost) shell_.fail("is nested too deeply");
  const auto place = [&](std::size_t at) {
    return shell_.place_of(
        line + std::count(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(at), '\n'), offset + at);
  };
  std::size_t start = 0;  // of plain text
  const auto flush = [&](std::size_t end) {
    for (std::size_t at = start; at < end;) {  // a place for each line
      const std::size_t next = std::min(raw.find('\n', at) == npos ? end : raw.find('\n', at) + 1, end);
      add_literal(raw.substr(at, next - at), place(at), quoted);
      at = next;
    }
  };
  std::size_t at = 0;
  while (at < raw.size()) {
    const char c = raw[at];
    const bool special = c == '\\' || c == '$' || c == '`' || (!quoted && (c == '\'' || c == '"'));
    const bool process = !quoted && (c == '<' || c == '>') && at == 0 && raw.substr(1).starts_with("(");
    if (!special && !process) {
      ++at;
      continue;
    }
    flush(at);
    at_ = place(at);
    if (c == '\\') {
      const std::string_view next = raw.substr(std::min(at + 1, raw.size()), 1);
      const bool keeps = quoted && next.find_first_of("$`\"\\\n") == npos;
      if (keeps) {
        add_literal("\\", at_, true);
        at += 1;
      } else if (mode_ == Mode::regex && !quoted && next.find_first_of("^$.[]()*+?{}|\\") != npos) {
        add_literal(raw.substr(at, 2), at_, false);  // \. is of the expression, and \s a plain s
        at += 2;
      } else {
        if (next != "\n") add_literal(next, at_, true);
        at += 2;
      }
    } else if (c == '\'') {
      const std::size_t end = std::min(raw.find('\'', at + 1), raw.size());
      for (std::size_t from = at + 1; from < end;) {
        const std::size_t next = std::min(raw.find('\n', from) == npos ? end : raw.find('\n', from) + 1, end);
        add_literal(raw.substr(from, next - from), place(from), true);
        from = next;
      }
      has_current_ = true;
      at = end + 1;
    } else if (c == '"') {
      const std::size_t end = std::min(end_of_part(raw, at), raw.size());
      const Place began = at_;
      add(raw.substr(at + 1, std::max(end, at + 2) - at - 2), place(at + 1).line, offset + at + 1, true);
      // "$@" of nothing is no field.
      if (raw.substr(at, end - at) != "\"$@\"" && !raw.substr(at, end - at).ends_with("[@]}\""))
        add_literal("", began, true);
      at = end;
    } else if (c == '`') {
      const std::size_t end = std::min(end_of_part(raw, at), raw.size());
      add_command(raw.substr(at + 1, std::max(end, at + 2) - at - 2), quoted);
      at = end;
    } else if (process) {
      const std::size_t end =
          std::min(end_of_part(std::string("$") + std::string(raw.substr(1)), 0), raw.size());
      add_value(Value(shell_.mark(Source::output, std::string(raw.substr(0, end))), at_), quoted);
      at = end;
    } else {
      at = add_dollar(raw, at, quoted);
    }
    start = at = std::min(at, raw.size());
  }
  flush(raw.size());
  --shell_.depth_;
}

std::size_t Expansion::add_dollar(std::string_view raw, std::size_t at, bool quoted) {
  const std::string_view rest = raw.substr(at + 1);
  const std::size_t end = std::min(end_of_part(raw, at), raw.size());
  const std::string_view part = raw.substr(at, end - at);
  // $[ ] is the old form of $(( )).
  const bool old = part.starts_with("$[") && part.ends_with("]");
  if (old || (part.starts_with("$((") && part.ends_with("))"))) {
    const std::size_t bracket = old ? 1 : 2;
    Expansion expression(shell_, Mode::text);
    expression.add(part.substr(1 + bracket, part.size() - 1 - 2 * bracket), at_.line, 0, true);
    add_value(shell_.number_of(expression.current_.text()), quoted);
    return end;
  }
  if (part.starts_with("$(")) {
    add_command(part.substr(2, part.size() - 3), quoted);
    return end;
  }
  if (part.starts_with("${") && part.size() > 3) {
    add_parameter(part.substr(2, part.size() - 3), quoted);
    return end;
  }
  if (part.starts_with("$'") && !quoted) {
    std::string text;
    for (std::size_t i = 2; i + 1 < part.size(); ++i) {
      const bool escapes = part[i] == '\\' && i + 2 < part.size();
      if (escapes) ++i;
      text += escapes ? escaped(part[i]) : part[i];
    }
    add_literal(text, at_, true);
    return end;
  }
  if (rest.starts_with("\"") && !quoted) return at + 1;
  if (rest.empty()) {
    add_literal("$", at_, quoted);
    return at + 1;
  }
  std::size_t length = 1;
  if (is_name_start(rest.front())) {
    while (length < rest.size() && (is_name_start(rest[length]) || is_digit(rest[length]))) ++length;
  } else if (!is_digit(rest.front()) && std::string_view("@*#?$!-").find(rest.front()) == npos) {
    add_literal("$", at_, quoted);
    return at + 1;
  }
  add_parameter(rest.substr(0, length), quoted);
  return at + 1 + length;
}

void Expansion::add_default(std::string_view word, bool quoted) {
  if (!quoted) {
    const bool splits = std::exchange(splits_literals_, true);
    add(word, at_.line, 0);
    splits_literals_ = splits;
    return;
  }
  Expansion of(shell_, Mode::text);  // quotes in quotes end there
  of.add(word, at_.line, 0);
  add_value(of.current_, true);
}

void Expansion::add_parameter(std::string_view inside, bool quoted) {
  const std::string whole(inside);
  const bool counts =
      inside.size() > 1 && inside.front() == '#' && std::string_view(":-%/=?").find(inside[1]) == npos;
  if (counts) inside.remove_prefix(1);
  const bool indirect = !counts && inside.size() > 1 && inside.front() == '!';
  if (indirect) inside.remove_prefix(1);
  std::size_t length = inside.empty() ? 0 : 1;
  if (!inside.empty() && (is_name_start(inside.front()) || is_digit(inside.front()))) {
    const bool number = is_digit(inside.front());
    while (length < inside.size() && (is_digit(inside[length]) || (!number && is_name_start(inside[length]))))
      ++length;
  }
  std::string name(inside.substr(0, length));
  inside.remove_prefix(length);
  std::string index;
  bool has_index = false;
  if (inside.starts_with("[")) {
    const std::size_t end = inside.find(']');
    if (end == npos) return add_value(Value(shell_.mark(Source::output, "${" + whole + "}"), at_), quoted);
    index = inside.substr(1, end - 1);
    has_index = true;
    inside.remove_prefix(end + 1);
  }
  const bool all = name == "@" || name == "*" || index == "@" || index == "*";
  if (indirect && all) {  // the indices of a list
    std::vector<Value> keys;
    if (const Variable* const list = shell_.find(name)) {
      if (list->is_open)
        return add_value(Value(shell_.mark(Source::output, "${" + whole + "}"), at_), quoted);
      for (const auto& [key, item] : list->items) keys.emplace_back(std::to_string(key), at_);
      for (const auto& [key, item] : list->named) keys.emplace_back(key, at_);
    }
    return add_values(keys, quoted, index == "*");
  }
  if (indirect) {
    const std::optional<Value> target = shell_.value_of(name);
    if (!target || !is_known(target->text())) return add_value(target.value_or(Value()), quoted);
    name = target->text();
  }
  std::vector<Value> values;
  if (all) {
    values = shell_.items_of(name);
  } else if (std::optional<Value> value =
                 has_index ? shell_.item_of(name, text_of(index)) : shell_.value_of(name)) {
    values.push_back(std::move(*value));
  }
  if (counts) {
    if (const Variable* const list = all ? shell_.find(name) : nullptr; list != nullptr && list->is_open)
      return add_value(Value(shell_.size_of_open(name, *list), at_), quoted);
    if (all) return add_value(Value(std::to_string(values.size()), at_), quoted);
    if (!values.empty() && !is_known(values.front().text()))
      return add_value(Value(shell_.mark(Source::output, "${" + whole + "}"), at_), quoted);
    return add_value(Value(std::to_string(values.empty() ? 0 : values.front().text().size()), at_), quoted);
  }
  const bool joins = name == "*" || index == "*";
  if (inside.empty()) return add_values(values, quoted, joins);

  const bool colon = inside.front() == ':';
  const char sign = inside.size() > 1 && colon ? inside[1] : inside.front();
  if (std::string_view("-=+?").find(sign) != npos) {
    const std::string_view word = inside.substr(colon ? 2 : 1);
    // What is set outside, if at all, is not in a plain run.
    const bool is_set = !values.empty() && (!colon || !shell_.plain(values.front().text()).empty()) &&
                        !(only_mark(values.front().text()) && shell_.plain(values.front().text()).empty());
    if (sign == '+') return is_set ? add_default(word, quoted) : void();
    if (is_set) return add_values(values, quoted, joins);
    // A run without it ends here: whoever starts the script sets it.
    if (sign == '?') return add_value(Value(shell_.mark(Source::environment, "$" + name), at_), quoted);
    if (sign == '-') return add_default(word, quoted);
    Value value(text_of(word), at_);
    if (!name.empty() && is_name_start(name.front()) && !has_index) shell_.set(name, value);
    return add_value(value, quoted);
  }
  if (all && colon) {  // a part of a list
    if (const Variable* const list = shell_.find(name); list != nullptr && list->is_open)
      return add_value(Value(shell_.mark(Source::output, "${" + whole + "}"), at_), quoted);
    const std::size_t second = find_unquoted(inside.substr(1), ':');
    const auto number = [&](std::string_view text, std::int64_t fallback) {
      const std::string value = shell_.number_of(text_of(text)).text();
      std::from_chars(value.data(), value.data() + value.size(), fallback);
      return fallback;
    };
    const std::int64_t size = std::ssize(values);
    std::int64_t from = number(inside.substr(1, second), 0);
    if (name == "@" || name == "*") from = std::max<std::int64_t>(from - 1, 0);
    if (from < 0) from += size;
    from = std::clamp<std::int64_t>(from, 0, size);
    const std::int64_t count = second == npos ? size : number(inside.substr(second + 2), size);
    const std::int64_t to =
        std::clamp<std::int64_t>(count < 0 ? size + count : from + std::min(count, size), from, size);
    return add_values({values.begin() + from, values.begin() + to}, quoted, joins);
  }
  if (values.empty()) values.emplace_back("", at_);
  for (Value& value : values) value = transformed(value, inside);
  add_values(values, quoted, joins);
}

Value Expansion::transformed(const Value& value, std::string_view operation) {
  if (operation.front() == '@') return value;
  if (!is_known(value.text())) return Value(mark_of(marks_in(value.text()).front()), value.place());
  switch (operation.front()) {
    case '#':
    case '%': return removed(value, operation);
    case '/': return replaced(value, operation.substr(1));
    case ':': return part_of(value, operation.substr(1));
    case '^':
    case ',': return Value(upper_or_lower(value.text(), operation), value.place());
    default: return Value(shell_.mark(Source::output, "${..." + std::string(operation) + "}"), at_);
  }
}

Value Expansion::removed(const Value& value, std::string_view operation) {
  const bool front = operation.front() == '#';
  const bool longest = operation.size() > 1 && operation[1] == operation[0];
  const std::string what = pattern(operation.substr(longest ? 2 : 1));
  const std::string_view text = value.text();
  const std::size_t size = text.size();
  shell_.charge(size * (size / 16 + 1));
  for (std::size_t i = 0; i <= size; ++i) {
    const std::size_t length = longest ? size - i : i;
    const std::string_view part = front ? text.substr(0, length) : text.substr(size - length);
    if (!matches(part, what)) continue;
    Value rest;
    rest.append(value, front ? length : 0, front ? size : size - length);
    return rest;
  }
  return value;
}

Value Expansion::replaced(const Value& value, std::string_view operation) {
  const bool all = operation.starts_with("/");
  const char anchor = operation.empty() ? '\0' : operation.front();
  const bool anchored = anchor == '#' || anchor == '%';
  if (all || anchored) operation.remove_prefix(1);
  const std::size_t slash = std::min(find_unquoted(operation, '/'), operation.size());
  const std::string what = pattern(operation.substr(0, slash));
  const std::string with = text_of(operation.substr(std::min(slash + 1, operation.size())));
  const std::string_view text = value.text();
  shell_.charge(text.size() * (text.size() / 16 + 1));
  std::string result;
  bool done = what.empty();
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    const bool may_start = !done && (anchor != '#' || !anchored || at == 0);
    for (std::size_t end = text.size(); may_start && end > at && length == 0; --end) {
      if (anchored && anchor == '%' && end != text.size()) break;
      if (matches(text.substr(at, end - at), what)) length = end - at;
    }
    if (length == 0) {
      result += text[at++];
      continue;
    }
    result += with;
    at += length;
    done = !all;
  }
  return Value(std::move(result), value.place());
}

Value Expansion::part_of(const Value& value, std::string_view range) {
  const std::size_t colon = find_unquoted(range, ':');
  const auto number = [&](std::string_view text) {
    std::int64_t result = 0;
    const std::string digits = shell_.number_of(text_of(text)).text();
    std::from_chars(digits.data(), digits.data() + digits.size(), result);
    return result;
  };
  const std::int64_t size = std::ssize(value.text());
  std::int64_t from = number(range.substr(0, colon));
  if (from < 0) from += size;
  from = std::clamp<std::int64_t>(from, 0, size);
  std::int64_t to = size;
  if (colon != npos) {
    const std::int64_t length = std::clamp<std::int64_t>(number(range.substr(colon + 1)), -size, size);
    to = std::clamp<std::int64_t>(length < 0 ? size + length : from + length, from, size);
  }
  Value part;
  part.append(value, static_cast<std::size_t>(from), static_cast<std::size_t>(to));
  return part;
}

void Expansion::add_command(std::string_view inside, bool quoted) {
  const Place at = at_;
  const auto unknown = [&] {
    add_value(Value(shell_.mark(Source::output, "$(" + shortened(inside) + ")"), at), quoted);
  };
  const std::size_t first = inside.find_first_not_of(" \t\n");
  const std::string_view start = inside.substr(std::min(first, inside.size()));
  constexpr std::array<std::string_view, 9> known{"echo", "printf", "seq",     "basename", "dirname",
                                                  "expr", "getopt", "command", "which"};
  if (std::none_of(known.begin(), known.end(),
                   [&](std::string_view name) { return start.starts_with(name); }))
    return unknown();
  try {
    const Script script = parse(inside, "", at.line);
    const Node& root = script.nodes[script.root];
    if (root.children.size() != 1) return unknown();
    const Node& command = script.nodes[root.children.front()];
    if (std::optional<std::string> text = printed_by(script, command)) {
      while (text->ends_with('\n')) text->pop_back();
      at_ = at;
      return add_value(Value(std::move(*text), at), quoted);
    }
  } catch (const InputError&) {
    // A command of another shell, which is not run.
  }
  unknown();
}

std::vector<Value> Expansion::fields() {
  end_field();
  return std::move(done_);
}

}  // namespace headroom::shell
