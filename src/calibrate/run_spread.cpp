#include "run_spread.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "headroom/core/expects.hpp"

namespace headroom {

std::vector<std::size_t> configurations_of(const std::vector<MeasuredCase>& runs) {
  std::vector<Request> seen;
  std::vector<std::size_t> numbers;
  for (const MeasuredCase& run : runs) {
    Request request = run.request;
    request.model.name = request.model.source = "";
    const auto found = std::find(seen.begin(), seen.end(), request);
    numbers.push_back(static_cast<std::size_t>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(std::move(request));
  }
  return numbers;
}

Spread widest_spread(const std::vector<MeasuredCase>& runs, const Spreads& spreads) {
  Spread widest;
  for (const MeasuredCase& run : runs) {
    const Spread spread = iteration_spread(run.request, spreads).spread;
    if (spread.logarithm > widest.logarithm) widest = spread;
  }
  return widest;
}

std::optional<double> spread_of_held_out(std::vector<double> absolute) {
  const auto count = static_cast<double>(absolute.size());
  const auto rank = static_cast<std::size_t>(std::ceil(interval_level * (count + 1) - 1e-9));
  if (rank > absolute.size()) return std::nullopt;
  std::sort(absolute.begin(), absolute.end());
  constexpr double digits = 1000;  // rounded up, so that it is never narrower than the errors, nor nothing
  return std::max(std::ceil(absolute[rank - 1] * digits), 1.0) / digits;
}

RunSpread run_spread(const std::vector<MeasuredCase>& fitted, const std::vector<MeasuredCase>& held_out,
                     const std::vector<RunError>& errors, const Spread& before, const std::string& file) {
  EXPECTS(errors.size() == fitted.size() + held_out.size());
  std::vector<MeasuredCase> runs = fitted;
  runs.insert(runs.end(), held_out.begin(), held_out.end());
  const std::vector<std::size_t> configurations = configurations_of(runs);
  std::map<std::size_t, std::vector<double>> by_configuration;  // repeats of one are not told apart
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::optional<double> error = errors[i].fitted ? errors[i].left_out : errors[i].after;
    if (error) by_configuration[configurations[i]].push_back(std::abs(std::log(1 + *error)));
  }
  std::vector<double> absolute;
  absolute.reserve(by_configuration.size());
  for (const auto& [number, values] : by_configuration) absolute.push_back(median(values));

  RunSpread spread{.configurations = static_cast<std::int64_t>(absolute.size())};
  spread.flash_attention = std::any_of(runs.begin(), runs.end(), [](const MeasuredCase& run) {
    return any_flash_attention(run.request.model);
  });
  if (const std::optional<double> held = spread_of_held_out(absolute)) {
    spread.logarithm = *held;
    spread.origin = Origin::calibrated;
    spread.source =
        fmt::format("{} configurations of {}, each predicted by headroom calibrate without its own times",
                    absolute.size(), file);
    return spread;
  }
  spread.logarithm = before.logarithm;
  spread.slower = before.slower;
  spread.source =
      fmt::format("Not told by runs, since the {} held-out configurations of {} are fewer than {}: {}",
                  absolute.size(), file, least_held_out, before.source);
  return spread;
}

}  // namespace headroom
