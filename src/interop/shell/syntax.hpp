// The syntax of a bash script: commands as nodes, words as they are written. Nothing is expanded here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::shell {

// A word with its quotes and expansions, and the line that it starts on.
struct Word {
  std::string raw;
  std::int64_t line = 0;
  std::size_t offset = 0;  // in the text that was parsed
};

// NAME=value, NAME+=value, NAME[index]=value, NAME=(words).
struct Assignment {
  std::string name;
  std::string index;  // raw; empty: none
  bool appends = false;
  bool is_list = false;
  Word value;               // of a scalar
  std::vector<Word> items;  // of a list
};

// `> file` and the like. Only what is written to a file, and a text that is read, matter.
struct Redirection {
  std::string sign;         // ">", ">>", "<", "<<", "<<<", "&>", ...
  Word target;              // of a heredoc: its text
  bool is_literal = false;  // a heredoc whose delimiter is quoted: nothing is expanded in it
};

enum class Kind : std::uint8_t {
  simple,      // assignments and words
  sequence,    // children one after another
  pipeline,    // children joined by |
  and_then,    // two children, &&
  or_else,     // two children, ||
  negation,    // one child
  group,       // { }
  subshell,    // ( )
  if_else,     // condition, branch, condition, branch, ..., else
  loop_while,  // condition, body
  loop_until,  // condition, body
  loop_for,    // name in words: body
  loop_count,  // three expressions: body
  choice,      // case: a word, patterns and branches
  function,    // name: body
  arithmetic,  // (( ))
  condition    // [[ ]]
};

// What follows a branch of a `case`: ;; nothing more, ;& the next branch, ;;& the patterns of the next.
enum class BranchEnd : std::uint8_t { stops, falls, matches_on };

// Nodes are in a list, and name their children by their place there.
struct Node {
  Kind kind = Kind::simple;
  std::int64_t line = 0;
  std::vector<Assignment> assignments;
  std::vector<Word> words;  // of a simple command, of [[ ]], of a `for`; the expressions of (( ))
  std::vector<Redirection> redirections;
  std::vector<std::size_t> children;
  std::string name;                         // of a function, of the variable of a `for`
  std::vector<std::vector<Word>> patterns;  // of a `case`, for each child
  std::vector<BranchEnd> ends;              // of a `case`, for each child
  bool lists_words = false;                 // a `for` with `in`
};

struct Script {
  std::vector<Node> nodes;
  std::size_t root = 0;
};

// The end of what starts at `at`, a quote, `${`, `$(`, a backtick or another character: the offset behind it. npos where it is not closed
// or nested too deeply.
std::size_t end_of_part(std::string_view text, std::size_t at, int depth = 0);

// Reads a script. Throws InputError with file and line where it is no bash, or more than a reader should hold.
Script parse(std::string_view text, const std::string& file, std::int64_t first_line = 1);

}  // namespace headroom::shell
