// Reading a value from a text, as flags and sweeps give it. Each reader says what the text breaks, as the end of a
// sentence that begins with the field ("must be a whole number, not 'x'"), or nothing where the value was read. A text
// that breaks a rule leaves the value as it was.
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

// The parts of a list, empty ones included; of an empty text one empty part.
std::vector<std::string_view> parts_of(std::string_view list, char separator = ',');

// ", not 'x'", of a long text its start.
std::string not_this(std::string_view text);

// A whole number from `least` to most_count, as count_of() reads it: "8192", "8k", "1,000,000".
std::string read_count(std::string_view text, std::int64_t& value, std::int64_t least = 1);

// Sequences of a global batch: a whole number, or tokens that so many sequences of `sequence` tokens are: "4M tokens", "4Mtok". A suffix alone
// ("4M") may be of either, and is refused with both. k and M are 1024 and 1024^2, as count_of() has them.
std::string read_global_batch(std::string_view text, std::int64_t sequence, std::int64_t& value);

// Whether a global batch is stated in tokens.
bool is_of_tokens(std::string_view global_batch);

// A number from 1 to 10^18, which may end in K, M, B (10^9) or T: "300B", "1.4T", "3e11".
std::string read_amount(std::string_view text, double& value);

// A number from `least` to 10^18, without a unit: "1.5".
std::string read_number(std::string_view text, double& value, double least);

// A unit, and how many of the base unit it is; without text: none is written.
struct Unit {
  std::string_view text;
  double base_units = 1;
};

// A positive number with one of the units, with or without a space between: "30d", "700 W".
std::string read_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example,
                           double& value);

// An enumerator by its spelling.
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
