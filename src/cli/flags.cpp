#include "cli/flags.hpp"

#include <algorithm>
#include <array>

#include "headroom/answer/values.hpp"
#include "headroom/core/decimal.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/parallel/edits.hpp"

namespace headroom::cli {

Problem as_typed(const Problem& problem) {
  constexpr std::array<std::string_view, 11> options{"timeline", "vary",     "zip",        "fit",
                                                     "mtbf",     "set",      "set_system", "set_software",
                                                     "system",   "software", "samples"};
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

std::vector<std::string> split_list(const FlagText& text) {
  if (!text) return {};
  return split(*text, text->find(';') == std::string::npos ? ',' : ';');
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
  const std::string rule = read_amount(*text, value);
  if (!rule.empty()) problems.push_back({flag, rule});
}

std::optional<double> read_part(std::string_view text) {
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double number = 0;
  const auto [rest, error] = decimal_from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) return {};
  return percent ? number / 100 : number;
}

void read_with_unit(const std::string& flag, const std::string& text, std::span<const Unit> units,
                    const char* example, double& value, std::vector<Problem>& problems) {
  const std::string rule = headroom::read_with_unit(text, units, example, value);
  if (!rule.empty()) problems.push_back({flag, rule});
}

}  // namespace headroom::cli
