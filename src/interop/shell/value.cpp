#include "interop/shell/value.hpp"

#include <algorithm>
#include <charconv>

#include "interop/shell/characters.hpp"

namespace headroom::shell {
namespace {

// Behind the closing bracket of a set, and whether it holds the character. npos: it is no set.
std::size_t match_set(std::string_view pattern, char c, bool& found) {
  std::size_t at = 1;
  const bool inverted = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (inverted) ++at;
  found = false;
  for (bool first = true; at < pattern.size(); first = false) {
    if (pattern[at] == ']' && !first) {
      found = found != inverted;
      return at + 1;
    }
    if (pattern.substr(at).starts_with("[:")) {
      const std::size_t end = pattern.find(":]", at);
      if (end == npos) return npos;
      const std::string_view name = pattern.substr(at + 2, end - at - 2);
      const bool digit = c >= '0' && c <= '9';
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      const bool space = c == ' ' || c == '\t' || c == '\n';
      found = found || (name == "digit" && digit) || (name == "alpha" && letter) ||
              (name == "alnum" && (digit || letter)) || (name == "space" && space);
      at = end + 2;
      continue;
    }
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      found = found || (pattern[at] <= c && c <= pattern[at + 2]);
      at += 3;
    } else {
      found = found || pattern[at] == c;
      ++at;
    }
  }
  return npos;
}

// Behind what one character of a text matches; npos: nothing.
std::size_t match_one(std::string_view pattern, char c) {
  switch (pattern.front()) {
    case '?': return 1;
    case '\\': return pattern.size() > 1 && pattern[1] == c ? 2 : npos;
    case '[': {
      bool found = false;
      const std::size_t end = match_set(pattern, c, found);
      if (end != npos) return found ? end : npos;
      break;
    }
    default: break;
  }
  return pattern.front() == c ? 1 : npos;
}

}  // namespace

std::string mark_of(std::size_t unknown) { return mark_start + std::to_string(unknown) + mark_end; }

std::vector<std::size_t> marks_in(std::string_view text) {
  std::vector<std::size_t> marks;
  for (std::size_t at = text.find(mark_start); at != npos; at = text.find(mark_start, at + 1)) {
    std::size_t mark = 0;
    std::from_chars(text.data() + at + 1, text.data() + text.size(), mark);
    if (std::find(marks.begin(), marks.end(), mark) == marks.end()) marks.push_back(mark);
  }
  return marks;
}

std::size_t find_separator(std::string_view text, std::size_t at, std::string_view separators) {
  for (; at < text.size(); ++at) {
    if (text[at] == mark_start)
      at = std::min(text.find(mark_end, at), text.size() - 1);
    else if (separators.find(text[at]) != npos)
      return at;
  }
  return text.size();
}

std::string shortened(std::string_view text) {
  constexpr std::size_t longest = 60;
  if (!is_known(text)) return "...";
  if (text.size() <= longest) return std::string(text);
  std::size_t end = longest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;  // within a character of UTF-8
  return std::string(text.substr(0, end)) + "...";
}

std::optional<std::size_t> only_mark(std::string_view text) {
  if (text.empty() || text.front() != mark_start || text.find(mark_end) + 1 != text.size())
    return std::nullopt;
  return marks_in(text).front();
}

std::size_t Value::place_index(std::size_t at) const {
  const auto after = std::upper_bound(places_.begin(), places_.end(), at,
                                      [](std::size_t from, const auto& place) { return from < place.first; });
  return after == places_.begin() ? 0 : static_cast<std::size_t>(after - places_.begin()) - 1;
}

void Value::append(std::string_view text, Place at) {
  if (text.empty() && !places_.empty()) return;
  if (places_.empty() || (places_.back().second != at && !text_.empty())) {
    places_.emplace_back(text_.size(), at);
  } else if (text_.empty()) {
    places_.back().second = at;
  }
  text_ += text;
}

void Value::append(const Value& other, std::size_t from, std::size_t to) {
  if (other.places_.empty()) return;
  if (from >= to) return append(std::string_view(), other.place());
  for (std::size_t index = other.place_index(from); from < to; ++index) {
    const bool last = index + 1 == other.places_.size();
    const std::size_t end = last ? to : std::min(to, other.places_[index + 1].first);
    append(std::string_view(other.text_).substr(from, end - from), other.places_[index].second);
    from = end;
  }
}

bool matches(std::string_view text, std::string_view pattern) {
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t star = npos;  // behind the last *
  std::size_t resumed = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      resumed = t;
      continue;
    }
    const std::size_t step = p < pattern.size() ? match_one(pattern.substr(p), text[t]) : npos;
    if (step != npos) {
      p += step;
      ++t;
      continue;
    }
    if (star == npos) return false;
    p = star;
    t = ++resumed;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace headroom::shell
