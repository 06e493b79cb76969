// Reads a pickle of plain containers: dictionaries, lists, tuples, texts, numbers, booleans and None, of
// protocols 0 to 5 [Python, Lib/pickle.py, Lib/pickletools.py]. Nothing is imported or called: a pickle
// that asks for it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/expects.hpp"

namespace headroom {

enum class PickleKind : std::uint8_t { none, boolean, integer, real, text, list, tuple, dict };

// A number, or the place of a text or a container in its Pickle. A container that occurs several times has
// one place. One that holds itself can be read.
struct PickleValue {
  PickleKind kind = PickleKind::none;
  union {
    std::int64_t integer = 0;  // also of a boolean
    double real;
    std::size_t place;
  };
};

struct Pickle {
  PickleValue root;
  std::vector<std::string> texts;
  std::vector<std::vector<PickleValue>> containers;  // of a dictionary: keys and values in turn

  [[nodiscard]] const std::string& text(const PickleValue& value) const {
    EXPECTS(value.kind == PickleKind::text);
    return texts[value.place];
  }
  [[nodiscard]] const std::vector<PickleValue>& items(const PickleValue& value) const {
    EXPECTS(value.kind == PickleKind::list || value.kind == PickleKind::tuple ||
            value.kind == PickleKind::dict);
    return containers[value.place];
  }
  // Returns the value of a key of a dictionary; null if it has none. Of equal keys the last counts.
  [[nodiscard]] const PickleValue* find(const PickleValue& dict, std::string_view key) const;
};

// Most values of a pickle, shared ones counted once: 3 GB in memory. Most bytes of a string, and of all.
inline constexpr std::uint64_t most_pickle_values = std::uint64_t{1} << 26;
inline constexpr std::uint64_t most_string_bytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t most_bytes_of_strings = std::uint64_t{1} << 30;

// Reads the bytes up to the end of the pickle. Throws InputError with the offset of the byte where they are
// no such pickle, or beyond a limit.
Pickle read_pickle(std::streambuf& bytes, const std::string& file);

}  // namespace headroom
