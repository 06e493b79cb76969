#include <algorithm>

#include "interop/shell/expansion.hpp"
#include "interop/shell/parser.hpp"

namespace headroom::shell {
namespace {

std::size_t behind_single_quotes(std::string_view text, std::size_t at, bool escapes) {
  for (++at; at < text.size(); ++at) {
    if (escapes && text[at] == '\\') {
      ++at;
    } else if (text[at] == '\'') {
      return at + 1;
    }
  }
  return npos;
}

std::size_t behind_double_quotes(std::string_view text, std::size_t at, int depth) {
  for (++at; at < text.size();) {
    const char c = text[at];
    if (c == '"') return at + 1;
    if (c == '\\') {
      at += 2;
    } else if (c == '$' || c == '`') {
      at = end_of_part(text, at, depth);
      if (at == npos) return npos;
    } else {
      ++at;
    }
  }
  return npos;
}

}  // namespace

std::size_t behind_bracket(std::string_view text, std::size_t at, char open, char close, int depth) {
  int count = 1;
  bool comment_may_start = true;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#' && close == ')' && comment_may_start) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    comment_may_start = c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '(';
    if (c == open) ++count;
    if (c == close && --count == 0) return at + 1;
    at = c == open || c == close ? at + 1 : end_of_part(text, at, depth);
    if (at == npos) return npos;
  }
  return npos;
}

std::size_t end_of_part(std::string_view text, std::size_t at, int depth) {
  if (depth > deepest_syntax) return npos;
  switch (text[at]) {
    case '\\': return std::min(at + 2, text.size());
    case '\'': return behind_single_quotes(text, at, false);
    case '"': return behind_double_quotes(text, at, depth + 1);
    case '`': {
      for (++at; at < text.size(); ++at) {
        if (text[at] == '\\') {
          ++at;
        } else if (text[at] == '`') {
          return at + 1;
        }
      }
      return npos;
    }
    case '$': break;
    default: return at + 1;
  }
  const std::string_view rest = text.substr(at + 1);
  if (rest.starts_with("(")) return behind_bracket(text, at + 2, '(', ')', depth + 1);
  if (rest.starts_with("[")) return behind_bracket(text, at + 2, '[', ']', depth + 1);
  if (rest.starts_with("{")) return behind_bracket(text, at + 2, '{', '}', depth + 1);
  if (rest.starts_with("'")) return behind_single_quotes(text, at + 1, true);
  return at + 1;
}

std::size_t find_unquoted(std::string_view text, char separator) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == separator) return at;
    at = end_of_part(text, at);
    if (at == npos) return npos;
  }
  return npos;
}

}  // namespace headroom::shell
