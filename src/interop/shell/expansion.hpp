// Expands one word: quotes, variables, numbers, and what a command prints where that can be known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "interop/shell/characters.hpp"
#include "interop/shell/interpreter.hpp"

namespace headroom::shell {

class Expansion {
 public:
  // fields: unquoted expansions are split by IFS, and vanish where they are empty. text: nothing is split. pattern, regex:
  // text whose quoted characters stand for themselves.
  enum class Mode : std::uint8_t { fields, text, pattern, regex };

  Expansion(Interpreter& shell, Mode mode) : shell_(shell), mode_(mode) {}

  // Adds what a text expands to; `offset` and `line` are its own.
  void add(std::string_view raw, std::int64_t line, std::size_t offset, bool quoted = false);

  // What a command prints (filters.cpp). None: only a run knows.
  std::optional<std::string> printed_by(const Script& script, const Node& command);

  std::vector<Value> fields();
  Value text() { return std::move(current_); }

 private:
  std::size_t add_dollar(std::string_view raw, std::size_t at, bool quoted);
  void add_parameter(std::string_view inside, bool quoted);
  void add_command(std::string_view inside, bool quoted);
  std::vector<Value> words_of(const Node& command);
  void add_default(std::string_view word, bool quoted);
  void add_literal(std::string_view text, Place at, bool quoted);
  void add_value(const Value& value, bool quoted);
  void add_split(const Value& value);
  void add_values(const std::vector<Value>& values, bool quoted, bool joins);
  void end_field();
  Value transformed(const Value& value, std::string_view operation);
  Value removed(const Value& value, std::string_view operation);
  Value replaced(const Value& value, std::string_view operation);
  Value part_of(const Value& value, std::string_view range);
  std::string pattern(std::string_view raw);
  std::string text_of(std::string_view raw);

  Interpreter& shell_;
  Mode mode_;
  std::vector<Value> done_;
  Value current_;
  bool has_current_ = false;
  bool splits_literals_ = false;  // in the word of ${NAME:+word}, whose blanks end fields
  Place at_;
};

// Whether `grep` finds what its words say in a line of a text. None: only a run knows, or it is no grep (filters.cpp).
std::optional<bool> grep_finds(const std::vector<Value>& words, const std::string& text);
// What that costs at most: a line is tried from each of its characters.
std::size_t work_of_grep(const std::string& text);

// The next `separator` that stands in no quotes or brackets, or npos.
std::size_t find_unquoted(std::string_view text, char separator);

// Words of {a,b} and {1..8} written out.
std::vector<std::string> brace_words(const std::string& raw);

}  // namespace headroom::shell
