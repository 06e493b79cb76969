// Readers of values from texts of flags and sweeps. A reader returns what is wrong with the text, or an empty
// text if it read the value. The answer ends a sentence that begins with the field ("must be a whole number,
// not 'x'"). A wrong text leaves the value unchanged.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/core/counts.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/core/names.hpp"

namespace headroom {

// Returns the parts of a list, including empty ones. An empty text has one empty part.
std::vector<std::string_view> parts_of(std::string_view list, char separator = ',');

// Returns ", not 'x'"; long texts are cut short.
std::string not_this(std::string_view text);

// Reads a whole number from `least` to most_count, as count_of() does: "8192", "8k", "1,000,000".
std::string read_count(std::string_view text, std::int64_t& value, std::int64_t least = 1);

// Reads the sequences of a global batch: a whole number, or tokens ("4M tokens", "4Mtok") in sequences of
// `sequence` tokens. A suffix alone ("4M") is ambiguous and refused; the answer names both meanings. k and M
// are 1024 and 1024^2, as in count_of().
std::string read_global_batch(std::string_view text, std::int64_t sequence, std::int64_t& value);

// Returns whether a global batch is stated in tokens.
bool is_of_tokens(std::string_view global_batch);

// Reads a number from 1 to 10^18 that may end in K, M, B (10^9) or T: "300B", "1.4T", "3e11".
std::string read_amount(std::string_view text, double& value);

// Reads a number from `least` to 10^18 without a unit: "1.5".
std::string read_number(std::string_view text, double& value, double least);

// A unit, and how many base units it has. An empty text is the unit of a bare number.
struct Unit {
  std::string_view text;
  double base_units = 1;
};

// Reads a positive number with one of the units, with or without a space between: "30d", "700 W".
std::string read_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example,
                           double& value);

// Reads an enumerator by its spelling.
template <class E>
std::string read_name(std::string_view text, E& value) {
  if (const auto found = from_name<E>(text)) {
    value = *found;
    return {};
  }
  std::vector<std::string_view> known;
  known.reserve(spellings<E>.size());
  for (const auto& [enumerator, spelling] : spellings<E>) known.push_back(spelling);
  return "must be one of " + joined(known) + not_this(text) + did_you_mean(text, known);
}

}  // namespace headroom
