// Texts of a script while it is followed: each part knows the line that it was written on, and may stand for a value that only a run knows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::shell {

struct Place {
  std::uint32_t file = 0;  // of the files that were read
  std::int64_t line = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// What only a run knows. argument: a positional parameter that was not given. environment: a variable that the
// script does not set. output: what a command prints.
enum class Source : std::uint8_t { argument, environment, output };

struct Unknown {
  Source source = Source::environment;
  std::string text;  // "$3", "$SLURM_NNODES", "$(nproc)"
  std::string name;  // the variable that it was given to: "BATCH_SIZE"
  Place at;
};

// An unknown stands in a text as a mark, which no script holds by itself: control characters are refused.
inline constexpr char mark_start = '\x01';
inline constexpr char mark_end = '\x02';
std::string mark_of(std::size_t unknown);
inline bool is_known(std::string_view text) { return text.find(mark_start) == std::string_view::npos; }
std::vector<std::size_t> marks_in(std::string_view text);
// The first of the separators from `at` on, or the end of the text. Characters of a mark are none.
std::size_t find_separator(std::string_view text, std::size_t at, std::string_view separators);
// The start of a text for a message: "..." if it holds marks or is longer.
std::string shortened(std::string_view text);
// Whether the text is a mark alone.
std::optional<std::size_t> only_mark(std::string_view text);

// A text, and the places of its parts.
class Value {
 public:
  Value() = default;
  Value(std::string text, Place at) : text_(std::move(text)), places_{{0, at}} {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  // Where a character was written, by default the first.
  [[nodiscard]] Place place(std::size_t at = 0) const {
    return places_.empty() ? Place{} : places_[place_index(at)].second;
  }

  void append(std::string_view text, Place at);
  void append(const Value& other) { append(other, 0, other.text_.size()); }
  void append(const Value& other, std::size_t from, std::size_t to);

  friend bool operator==(const Value& x, const Value& y) { return x.text_ == y.text_; }

 private:
  [[nodiscard]] std::size_t place_index(std::size_t at) const;

  std::string text_;
  std::vector<std::pair<std::size_t, Place>> places_;  // from which character on
};

// A scalar has the item "0" alone.
struct Variable {
  bool is_list = false;
  bool is_open = false;  // a list of as many items as only a run knows: NAME=($(command))
  bool is_associative = false;
  bool is_number = false;  // declare -i: what is assigned is arithmetic
  std::string stands_for;  // declare -n: the variable that is meant
  std::map<std::int64_t, Value> items;
  std::vector<std::pair<std::string, Value>> named;
  friend bool operator==(const Variable&, const Variable&) = default;
};

// Whether a text matches a pattern of *, ? and [ ], of which `quoted` characters stand for themselves.
bool matches(std::string_view text, std::string_view pattern);

}  // namespace headroom::shell
