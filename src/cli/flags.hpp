// Reading flag values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom::cli {

// The parts of a list, empty ones included; none when the flag is not given.
std::vector<std::string> split_list(const FlagText& text);

// A whole number from `least` to 2^31 - 1. A flag that is not given leaves `value` as it is.
void read_count(const std::string& flag, const FlagText& text, std::int64_t& value,
                std::vector<Problem>& problems, std::int64_t least = 1);

// A positive number, which may end in K, M, B (10^9) or T: "300B", "1.4T", "3e11".
void read_quantity(const std::string& flag, const FlagText& text, double& value,
                   std::vector<Problem>& problems);

// By a year; of months nobody knows how long they are.
inline constexpr Unit durations[] = {{"ms", 1e-3},    {"s", 1},           {"seconds", 1},  {"min", 60},
                                     {"minutes", 60}, {"h", 3600},        {"hours", 3600}, {"d", 86400},
                                     {"day", 86400},  {"days", 86400},    {"w", 604800},   {"weeks", 604800},
                                     {"y", 31557600}, {"years", 31557600}};

// A positive number with one of the units, with or without a space between: "30d", "700 W".
void read_with_unit(const std::string& flag, const std::string& text, std::span<const Unit> units,
                    const char* example, double& value, std::vector<Problem>& problems);

// A part of one, as such or in percent: "0.05", "5%". None where the text is no number.
std::optional<double> read_part(std::string_view text);

// An enumerator by its spelling. A flag that is not given leaves `value` as it is.
template <class E>
void read_choice(const std::string& flag, const FlagText& text, E& value, std::vector<Problem>& problems) {
  if (!text) return;
  const std::string rule = read_name(*text, value);
  if (!rule.empty()) problems.push_back({flag, rule});
}

// A problem of the library as one of the command line: what it names is an option there ("tensor_parallel", "set hidden").
Problem as_typed(const Problem& problem);

// The flag of a field as the help shows it, with its letter: "-t,--tensor-parallel".
std::string flag_names(const StrategyField& field);

// Runs `action` and adds the problems that it throws to the list.
template <class Action>
void collect(std::vector<Problem>& problems, Action action) {
  try {
    action();
  } catch (const InputError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
}

}  // namespace headroom::cli
