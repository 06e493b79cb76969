#include "interop/launch_in/python_tokens.hpp"

#include <array>

#include <fmt/format.h>

#include "headroom/core/error.hpp"

namespace headroom {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

class PythonLexer {
 public:
  PythonLexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<PythonToken> run() {
    while (at_ < text_.size()) {
      if (line_start_ && open_ == 0) {
        indentation();
        if (at_ >= text_.size()) break;
      }
      next();
    }
    if (open_ > 0) fail("has an open bracket at its end");
    if (!tokens_.empty() && tokens_.back().kind != PythonTokenKind::newline)
      add(PythonTokenKind::newline, "");
    for (; indents_.size() > 1; indents_.pop_back()) add(PythonTokenKind::dedent, "");
    add(PythonTokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(fmt::format("{}:{}", file_, line_), std::string(what));
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void add(PythonTokenKind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), false, line_});
  }

  // Of a line with something on it.
  void indentation() {
    std::size_t width = 0;
    for (; peek() == ' ' || peek() == '\t' || peek() == '\f'; ++at_)
      width = peek() == '\t' ? (width / 8 + 1) * 8 : width + 1;
    if (peek() == '\n' || peek() == '#' || at_ >= text_.size()) {
      line_start_ = false;
      blank_ = true;
      return;
    }
    line_start_ = false;
    blank_ = false;
    if (width > indents_.back()) {
      constexpr std::size_t deepest = 100;
      if (indents_.size() == deepest) fail("has more than 100 levels of blocks");
      indents_.push_back(width);
      add(PythonTokenKind::indent, "");
    }
    for (; width < indents_.back(); indents_.pop_back()) add(PythonTokenKind::dedent, "");
  }

  void next() {
    const char c = peek();
    if (c == '\n') {
      if (open_ == 0) {
        if (!blank_) add(PythonTokenKind::newline, "");
        line_start_ = true;
      }
      ++at_;
      ++line_;
    } else if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
      ++line_;
    } else if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\f') {
      ++at_;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
      number();
    } else if (c == '"' || c == '\'') {
      string("");
    } else if (is_letter(c)) {
      word();
    } else {
      sign();
    }
  }

  void number() {
    const std::size_t start = at_;
    while (is_digit(peek()) || is_letter(peek()) || peek() == '.' ||
           ((peek() == '-' || peek() == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E')))
      ++at_;
    std::string digits(text_.substr(start, at_ - start));
    std::erase(digits, '_');
    add(PythonTokenKind::number, std::move(digits));
  }

  void word() {
    const std::size_t start = at_;
    while (is_letter(peek()) || is_digit(peek())) ++at_;
    const std::string name(text_.substr(start, at_ - start));
    const bool prefix = name.size() <= 2 && name.find_first_not_of("rRbBfFuU") == std::string::npos;
    if (prefix && (peek() == '"' || peek() == '\'')) return string(name);
    add(PythonTokenKind::name, name);
  }

  void string(const std::string& prefix) {
    const bool raw = prefix.find_first_of("rR") != std::string::npos;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    const std::int64_t first_line = line_;
    at_ += triple ? 3 : 1;
    std::string value;
    for (;; ++at_) {
      if (at_ >= text_.size() || (!triple && peek() == '\n')) {
        line_ = first_line;
        fail("opens a text that has no end");
      }
      if (peek() == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (peek() == '\n') ++line_;
      if (peek() == '\\' && at_ + 1 < text_.size()) {
        if (raw) value += '\\';
        ++at_;
        if (peek() == '\n') {
          ++line_;
          continue;
        }
        value += !raw && peek() == 'n' ? '\n' : !raw && peek() == 't' ? '\t' : peek();
        continue;
      }
      value += peek();
    }
    at_ += triple ? 3 : 1;
    add(PythonTokenKind::text, std::move(value));
    tokens_.back().line = first_line;
    tokens_.back().formatted = prefix.find_first_of("fF") != std::string::npos;
  }

  void sign() {
    constexpr std::array<std::string_view, 23> signs{
        "**=", "//=", "...", "->", "==", "!=", "<=", ">=", "**", "//", ":=", "+=",
        "-=",  "*=",  "/=",  "%=", "|=", "&=", "<<", ">>", "^=", "@=", "<>"};
    for (const std::string_view sign : signs) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      add(PythonTokenKind::sign, std::string(sign));
      at_ += sign.size();
      return;
    }
    const char c = peek();
    if (c == '(' || c == '[' || c == '{') ++open_;
    if (c == ')' || c == ']' || c == '}') {
      if (open_ == 0) fail("closes a bracket that is not open");
      --open_;
    }
    add(PythonTokenKind::sign, std::string(1, c));
    ++at_;
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<PythonToken> tokens_;
  std::vector<std::size_t> indents_{0};
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
  int open_ = 0;
  bool line_start_ = true;
  bool blank_ = false;
};

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view text, const std::string& file) {
  return PythonLexer(text, file).run();
}

}  // namespace headroom
