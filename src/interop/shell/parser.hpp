// A script on its way to nodes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interop/shell/characters.hpp"
#include "interop/shell/syntax.hpp"

namespace headroom::shell {

inline constexpr int deepest_syntax = 100;  // of commands and expansions

constexpr bool is_name(char c) { return is_name_start(c) || is_digit(c); }
// What ends a word.
constexpr bool is_meta(char c) { return std::string_view(" \t\n;&|<>()").find(c) != npos; }

// The end of what a bracket opened, or npos; `open` and `close` are counted, and quotes skipped.
std::size_t behind_bracket(std::string_view text, std::size_t at, char open, char close, int depth);

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, std::int64_t first_line)
      : text_(text), file_(file), line_(first_line) {}

  Script run();

 private:
  [[noreturn]] void fail(const std::string& rule, std::int64_t line = 0) const;

  [[nodiscard]] std::size_t at_end_of_token() const;

  std::size_t add(Kind kind);
  Node& node(std::size_t index) { return script_.nodes[index]; }

  void advance(std::size_t to);

  // Blanks, continued lines and comments, but no newline.
  void skip_blank();

  void newline();

  void skip_newlines();

  // Also those before `;`, which end a command.
  void skip_ends();

  [[nodiscard]] bool starts(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  // A reserved word stands alone.
  [[nodiscard]] bool at_word(std::string_view word) const;
  bool take_word(std::string_view word);
  void expect_word(std::string_view word, std::string_view opened, std::int64_t line);

  Word word();

  // Commands up to one of `ends`, which is not taken.
  std::size_t list(const std::vector<std::string_view>& ends, int depth);

  std::size_t and_or(int depth);

  std::size_t pipeline(int depth);

  std::size_t command(int depth);

  // A compound command, or npos.
  std::size_t compound(int depth);

  void take_brackets(std::int64_t line);

  // name() { ... }, or npos.
  std::size_t named_function(int depth, std::int64_t line);

  std::size_t function(std::string name, int depth, std::int64_t line);

  std::size_t block(Kind kind, const std::vector<std::string_view>& ends, int depth, std::string_view opened,
                    std::int64_t line);

  std::size_t if_else(int depth, std::int64_t line);

  std::size_t loop(Kind kind, int depth, std::int64_t line);

  std::size_t loop_for(int depth, std::int64_t line);

  std::size_t choice(int depth, std::int64_t line);

  // The words of [[ ]], with ( ) && || as words of their own.
  std::size_t condition(std::int64_t line);

  Word regular_expression();

  std::size_t simple(int depth);

  static bool is_declaration(std::string_view word);

  bool assignment(std::size_t result, int depth);

  void redirections(std::size_t result);

  bool redirection(std::size_t result);

  void read_heredoc(std::size_t index, std::size_t place, const std::string& delimiter, bool strips_tabs);

  struct Heredoc {
    std::size_t node;
    std::size_t redirection;
    std::string delimiter;
    bool strips_tabs;
  };

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::int64_t line_;
  bool ended_compound_ = false;
  std::vector<Heredoc> heredocs_;
  Script script_;
};

}  // namespace headroom::shell
