#include "cli/flags.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "headroom/answer/values.hpp"
#include "headroom/core/reading.hpp"

namespace headroom::cli {

Problem as_typed(const Problem& problem) {
  constexpr std::array<std::string_view, 8> options{"vary",       "zip",          "fit",    "set",
                                                    "set_system", "set_software", "system", "software"};
  Problem typed = by_flag(problem);
  const std::size_t end = std::min(typed.where.find(' '), typed.where.size());
  const std::string first = typed.where.substr(0, end);
  if (std::find(options.begin(), options.end(), first) != options.end()) {
    typed.where.replace(0, end, flag_of(first));
  }
  return typed;
}

std::string flag_names(const StrategyField& field) {
  std::string flag = flag_of(field.name);
  if (field.letter.empty()) return flag;
  return short_flag_of(field) + ',' + flag;
}

std::string in_own_name(const std::string& argument) {
  // Other names of flags that are no fields of a strategy, or that say what the value is.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> others{
      {{"--gpus", "--devices"},
       {"--stack", "--software"},
       {"--framework", "--software"},
       {"--json", "--format=json"},
       {"--grad-reduce-in-bf16", "--gradient-dtype=half"}}};
  if (!argument.starts_with("--")) return argument;
  const std::size_t equals = std::min(argument.find('='), argument.size());
  const std::string flag = argument.substr(0, equals);
  const std::string rest = argument.substr(equals);
  const auto other =
      std::find_if(others.begin(), others.end(), [&](const auto& pair) { return pair.first == flag; });
  if (other != others.end()) return std::string(other->second) + rest;
  const StrategyField* const field = find_field(flag.substr(2));
  return field != nullptr && field->letter != flag.substr(2) ? flag_of(field->name) + rest : argument;
}

std::vector<std::string> split_at_commas(const FlagText& text) {
  return text ? split(*text, ',') : std::vector<std::string>();
}

void read_count(const std::string& flag, const FlagText& text, std::int64_t& value,
                std::vector<Problem>& problems, std::int64_t least) {
  if (!text) return;
  const std::string rule = headroom::read_count(*text, value, least);
  if (!rule.empty()) problems.push_back({flag, rule});
}

void read_quantity(const std::string& flag, const FlagText& text, double& value,
                   std::vector<Problem>& problems) {
  if (!text) return;
  constexpr std::string_view suffixes = "KMBT";
  double number = 0;
  const char* const last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), last, number);
  const std::size_t suffix = end + 1 == last ? suffixes.find(*end) : std::string_view::npos;
  const bool read = error == std::errc() && (end == last || suffix != std::string_view::npos);
  if (read && suffix != std::string_view::npos) number *= std::pow(1000.0, static_cast<double>(suffix) + 1);
  constexpr double most = 1e18;
  if (read && number >= 1 && number <= most) {
    value = number;
  } else {
    problems.push_back(
        {flag, "must be a number from 1 to 1e18, such as 300B or 1.4T, not '" + text->substr(0, 40) + "'"});
  }
}

void read_with_unit(const std::string& flag, const std::string& text, std::span<const Unit> units,
                    const char* example, double& value, std::vector<Problem>& problems) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  std::string_view unit(end, static_cast<std::size_t>(last - end));
  if (error == std::errc() && unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& each) { return each.text == unit; });
  const bool read = error == std::errc() && found != units.end();
  constexpr double most = 1e18;
  if (const double product = read ? number * found->base_units : 0; product > 0 && product <= most) {
    value = product;
  } else {
    problems.push_back({flag, std::string("must be a positive number such as ") + example + ", not '" +
                                  text.substr(0, 40) + "'"});
  }
}

}  // namespace headroom::cli
