#include "interop/pickle.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "headroom/core/decimal.hpp"
#include "headroom/core/error.hpp"

namespace headroom {

const PickleValue* Pickle::find(const PickleValue& dict, std::string_view key) const {
  const std::vector<PickleValue>& of = items(dict);
  for (std::size_t i = of.size(); i >= 2; i -= 2) {
    if (of[i - 2].kind == PickleKind::text && text(of[i - 2]) == key) return &of[i - 1];
  }
  return nullptr;
}

namespace {

struct RefusedOpcode {
  char code;
  const char* name;
};
// Opcodes that are refused: they import, call, read outside the file, or make sets and bytearrays, which no
// snapshot has.
constexpr RefusedOpcode refused_opcodes[] = {{'c', "GLOBAL"},         {'\x93', "STACK_GLOBAL"},
                                             {'R', "REDUCE"},         {'b', "BUILD"},
                                             {'i', "INST"},           {'o', "OBJ"},
                                             {'\x81', "NEWOBJ"},      {'\x92', "NEWOBJ_EX"},
                                             {'P', "PERSID"},         {'Q', "BINPERSID"},
                                             {'\x82', "EXT1"},        {'\x83', "EXT2"},
                                             {'\x84', "EXT4"},        {'\x8f', "EMPTY_SET"},
                                             {'\x90', "ADDITEMS"},    {'\x91', "FROZENSET"},
                                             {'\x97', "NEXT_BUFFER"}, {'\x98', "READONLY_BUFFER"},
                                             {'\x96', "BYTEARRAY8"}};

// Runs the opcodes on a stack, as Python does.
class PickleMachine {
 public:
  PickleMachine(std::streambuf& bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Pickle run() && {
    for (;;) {
      at_ = offset_;
      const char code = byte();
      if (code == '.') break;
      step(code);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends with other than one value");
    pickle_.root = stack_.back();
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void fail(const std::string& rule) const {
    throw InputError(file_, fmt::format("byte {}: {}", at_, rule));
  }

  char byte() {
    const auto value = bytes_.sbumpc();
    if (value == std::streambuf::traits_type::eof()) fail("the pickle is cut off");
    ++offset_;
    return std::streambuf::traits_type::to_char_type(value);
  }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      const auto of = static_cast<unsigned char>(byte());
      if (i < 8) value |= std::uint64_t{of} << (8 * i);
      if (i >= 8 && of != 0) fail("a length is beyond 64 bits");
    }
    return value;
  }
  void count_string(std::uint64_t bytes) {
    if (bytes > most_string_bytes)
      fail(fmt::format("a string has {} bytes; the limit is {}", bytes, most_string_bytes));
    string_bytes_ += bytes;
    if (string_bytes_ > most_bytes_of_strings)
      fail(fmt::format("the strings have more than {} bytes", most_bytes_of_strings));
  }
  std::string bytes(std::size_t count) {
    count_string(count);
    std::string text(count, '\0');
    const auto read = bytes_.sgetn(text.data(), static_cast<std::streamsize>(count));
    if (read != static_cast<std::streamsize>(count)) fail("the pickle is cut off");
    offset_ += count;
    return text;
  }
  std::string line() {
    std::string text;
    for (char next = byte(); next != '\n'; next = byte()) {
      text += next;
      if (text.size() > most_string_bytes) break;
    }
    count_string(text.size());
    return text;
  }

  void push(PickleValue value) {
    if (++values_ > most_pickle_values)
      fail(fmt::format("the pickle has more than {} values", most_pickle_values));
    stack_.push_back(value);
  }
  void push(PickleKind kind, std::int64_t integer) {
    PickleValue value{.kind = kind};
    value.integer = integer;
    push(value);
  }
  void push_real(double real) {
    PickleValue value{.kind = PickleKind::real};
    value.real = real;
    push(value);
  }
  void push_text(std::string text) {
    PickleValue value{.kind = PickleKind::text};
    value.place = pickle_.texts.size();
    pickle_.texts.push_back(std::move(text));
    push(value);
  }
  void push_container(PickleKind kind, std::vector<PickleValue> items) {
    if (kind == PickleKind::dict && items.size() % 2 != 0) fail("a dictionary has a key without a value");
    PickleValue value{.kind = kind};
    value.place = pickle_.containers.size();
    pickle_.containers.push_back(std::move(items));
    push(value);
  }
  PickleValue pop() {
    if (stack_.size() <= floor()) fail("the pickle takes a value that is not there");
    const PickleValue value = stack_.back();
    stack_.pop_back();
    return value;
  }
  // What lies below the innermost mark is out of reach.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<PickleValue> pop_to_mark() {
    if (marks_.empty()) fail("the pickle takes values up to a mark that is not there");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<PickleValue> pop_last(std::size_t count) {
    std::vector<PickleValue> items(count);
    while (count > 0) items[--count] = pop();
    return items;
  }
  std::vector<PickleValue>& top(PickleKind kind) {
    if (stack_.size() <= floor() || stack_.back().kind != kind)
      fail(kind == PickleKind::dict ? "the pickle adds items to what is no dictionary"
                                    : "the pickle adds items to what is no list");
    return pickle_.containers[stack_.back().place];
  }
  void add(PickleKind kind, const std::vector<PickleValue>& items) {
    if (kind == PickleKind::dict && items.size() % 2 != 0) fail("a dictionary has a key without a value");
    std::vector<PickleValue>& to = top(kind);
    to.insert(to.end(), items.begin(), items.end());
  }

  // A place in the memo takes at least two bytes, so an honest one is below the offset.
  void put(std::size_t place) {
    if (stack_.size() <= floor()) fail("the pickle keeps a value that is not there");
    if (place > offset_ || place > most_pickle_values)
      fail(fmt::format("the pickle has no room for value {}", place));
    if (memo_.size() <= place) memo_.resize(place + 1);
    memo_[place] = stack_.back();
    next_place_ = std::max(next_place_, place + 1);
  }
  void get(std::size_t place) {
    if (place >= memo_.size() || !memo_[place])
      fail(fmt::format("the pickle takes value {}, which is not there", place));
    push(*memo_[place]);
  }

  std::int64_t signed_number(std::uint64_t bytes) {
    if (bytes > 8) fail(fmt::format("a whole number has {} bytes; the limit is 8", bytes));
    const std::uint64_t value = number(static_cast<int>(bytes));
    const auto unused = static_cast<int>(64 - 8 * bytes);
    if (bytes == 0) return 0;
    return static_cast<std::int64_t>(value << unused) >> unused;
  }

  template <class Number>
  Number decimal(std::string_view text, const char* what) {
    Number value{};
    const char* const first = text.data();
    const auto [end, error] = [&] {
      if constexpr (std::is_floating_point_v<Number>)
        return decimal_from_chars(first, first + text.size(), value);
      else
        return std::from_chars(first, first + text.size(), value);
    }();
    if (error != std::errc() || end != text.data() + text.size())
      fail(fmt::format("'{}' is no {}", text, what));
    return value;
  }
  std::uint64_t line_number() { return decimal<std::uint64_t>(line(), "place of a value"); }

  // Opcodes of protocol 0, which are lines of text.
  bool step_text(char code) {
    switch (code) {
      case 'I': {
        const std::string text = line();
        if (text == "00" || text == "01") {
          push(PickleKind::boolean, text == "01" ? 1 : 0);
        } else {
          push(PickleKind::integer, decimal<std::int64_t>(text, "whole number"));
        }
        return true;
      }
      case 'L': {
        std::string text = line();
        if (text.ends_with('L')) text.pop_back();
        push(PickleKind::integer, decimal<std::int64_t>(text, "whole number"));
        return true;
      }
      case 'F': push_real(decimal<double>(line(), "number")); return true;
      case 'V': push_text(line()); return true;
      case 'S': {
        const std::string text = line();
        if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"'))
          fail("a string is not in quotes");
        push_text(text.substr(1, text.size() - 2));
        return true;
      }
      case 'p': put(line_number()); return true;
      case 'g': get(line_number()); return true;
      default: return false;
    }
  }

  // Texts and numbers.
  bool step_value(char code) {
    switch (code) {
      case 'N': push(PickleKind::none, 0); return true;
      case '\x88': push(PickleKind::boolean, 1); return true;
      case '\x89': push(PickleKind::boolean, 0); return true;
      case 'K': push(PickleKind::integer, static_cast<std::int64_t>(number(1))); return true;
      case 'M': push(PickleKind::integer, static_cast<std::int64_t>(number(2))); return true;
      case 'J': push(PickleKind::integer, signed_number(4)); return true;
      case '\x8a': push(PickleKind::integer, signed_number(number(1))); return true;
      case '\x8b': push(PickleKind::integer, signed_number(number(4))); return true;
      case 'G': {
        std::uint64_t bits = 0;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<unsigned char>(byte());
        double value = 0;  // std::bit_cast is not in emscripten's libc++
        std::memcpy(&value, &bits, sizeof value);
        push_real(value);
        return true;
      }
      case '\x8c':
      case 'U':
      case 'C': push_text(bytes(number(1))); return true;
      case 'X':
      case 'T':
      case 'B': push_text(bytes(number(4))); return true;
      case '\x8d':
      case '\x8e': push_text(bytes(number(8))); return true;
      default: return false;
    }
  }

  bool step_container(char code) {
    switch (code) {
      case '(':
        if (++values_ > most_pickle_values) fail("the pickle has too many marks");
        marks_.push_back(stack_.size());
        return true;
      case ']': push_container(PickleKind::list, {}); return true;
      case '}': push_container(PickleKind::dict, {}); return true;
      case ')': push_container(PickleKind::tuple, {}); return true;
      case 'l': push_container(PickleKind::list, pop_to_mark()); return true;
      case 'd': push_container(PickleKind::dict, pop_to_mark()); return true;
      case 't': push_container(PickleKind::tuple, pop_to_mark()); return true;
      case '\x85':
      case '\x86':
      case '\x87':
        push_container(PickleKind::tuple, pop_last(static_cast<std::size_t>(code - '\x85') + 1));
        return true;
      case 'a': add(PickleKind::list, pop_last(1)); return true;
      case 'e': add(PickleKind::list, pop_to_mark()); return true;
      case 's': add(PickleKind::dict, pop_last(2)); return true;
      case 'u': add(PickleKind::dict, pop_to_mark()); return true;
      default: return false;
    }
  }

  void step(char code) {
    if (step_value(code) || step_container(code) || step_text(code)) return;
    switch (code) {
      case '\x80':
        if (number(1) > 5) fail("the pickle is of a protocol after 5");
        return;
      case '\x95': number(8); return;  // a frame: only a hint
      case '0': pop(); return;
      case '1': pop_to_mark(); return;
      case '2':
        if (stack_.size() <= floor()) fail("the pickle takes a value that is not there");
        return push(stack_.back());
      case 'q': return put(number(1));
      case 'r': return put(number(4));
      case '\x94': return put(next_place_);
      case 'h': return get(number(1));
      case 'j': return get(number(4));
      default: break;
    }
    for (const RefusedOpcode& refused : refused_opcodes) {
      if (refused.code == code)
        fail(fmt::format(
            "opcode {} is not allowed: Headroom reads pickles of plain data only, and executes nothing",
            refused.name));
    }
    fail(fmt::format("0x{:02x} is no opcode of a pickle", static_cast<unsigned char>(code)));
  }

  std::streambuf& bytes_;
  const std::string& file_;
  std::uint64_t offset_ = 0;  // of the next byte
  std::uint64_t at_ = 0;      // of the opcode at hand
  std::uint64_t values_ = 0;
  std::uint64_t string_bytes_ = 0;
  std::size_t next_place_ = 0;
  Pickle pickle_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::optional<PickleValue>> memo_;
};

}  // namespace

Pickle read_pickle(std::streambuf& bytes, const std::string& file) {
  return PickleMachine(bytes, file).run();
}

}  // namespace headroom
