#include "headroom/calibrate/fit_runs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "efficiency.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "rate_parameters.hpp"
#include "run_spread.hpp"

namespace headroom {
namespace {

constexpr double run_scale = 0.05;    // relative error from where on a run counts as an outlier
constexpr double explained = 0.10;    // by which a run may miss the times within the bounds: twice run_scale
constexpr double worth_a_note = 0.1;  // dependence of a held-out run on what was not fitted
constexpr std::size_t most_parts = 10;  // that configurations are dealt into for leaving them out
constexpr std::size_t most_named = 5;   // runs in a source

using Indices = std::vector<std::size_t>;

const Figure& iteration_of(const MeasuredCase& run) {
  const auto figure = std::find_if(run.figures.begin(), run.figures.end(),
                                   [](const Figure& it) { return it.measure == Measure::iteration_seconds; });
  EXPECTS(figure != run.figures.end());
  return *figure;
}

double error_under(const MeasuredCase& run, const Rates& rates) {
  return iteration_under(run, rates).count() / iteration_of(run).value - 1;
}

std::vector<double> errors_under(const std::vector<MeasuredCase>& runs, const Rates& rates) {
  std::vector<double> errors;
  errors.reserve(runs.size());
  for (const MeasuredCase& run : runs) errors.push_back(error_under(run, rates));
  return errors;
}

double median_absolute(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return median(std::move(errors));
}

// Fits efficiencies to some of the runs.
class Fit {
 public:
  Fit(const std::vector<MeasuredCase>& runs, const Rates& base)
      : runs_(runs),
        base_(base),
        configurations_(configurations_of(runs)),
        dependences_(dependences_of(runs, base)) {}

  [[nodiscard]] const Indices& configurations() const { return configurations_; }

  // Returns the efficiencies that the runs determine.
  [[nodiscard]] std::vector<Efficiency> told(const Indices& among) const {
    std::set<std::size_t> different;
    for (const std::size_t run : among) different.insert(configurations_[run]);
    std::vector<Efficiency> result;
    for (const std::size_t i : told_by(dependences_, among, (different.size() + 1) / 2)) {
      result.push_back(efficiencies()[i]);
    }
    return result;
  }

  [[nodiscard]] std::vector<Parameter> parameters(const std::vector<Efficiency>& told) const {
    std::vector<Parameter> result;
    result.reserve(told.size());
    for (const Efficiency& it : told) {
      result.push_back({.name = std::string(it.name),
                        .start = rate_value(base_, it.rates.front()),
                        .least = least_value(it, base_),
                        .most = most_value(it, base_)});
    }
    return result;
  }

  [[nodiscard]] Rates rates(const Indices& among, const std::vector<Efficiency>& told) const {
    Rates rates = base_;
    if (told.empty()) return rates;
    const auto apply = [&](std::span<const double> values) {
      for (std::size_t i = 0; i < told.size(); ++i) set_efficiency(rates, told[i], values[i], base_);
    };
    const auto residuals = [&](std::span<const double> values, std::span<double> out) {
      apply(values);
      for (std::size_t i = 0; i < among.size(); ++i) {
        const MeasuredCase& run = runs_[among[i]];
        out[i] = std::log(iteration_under(run, rates).count() / iteration_of(run).value);
      }
    };
    apply(fit_robustly(parameters(told), among.size(), residuals, run_scale).values);
    for (const Efficiency& it : told) {
      for (const std::string_view rate : it.rates) round_rate(rates, rate);
    }
    return rates;
  }

 private:
  const std::vector<MeasuredCase>& runs_;
  const Rates& base_;
  Indices configurations_;
  Dependences dependences_;
};

// Predicts each configuration with efficiencies fitted to the others; absent if there are no others.
std::vector<std::optional<double>> left_out_errors(const std::vector<MeasuredCase>& runs, const Fit& fit,
                                                   const Watch& watch) {
  std::vector<std::optional<double>> errors(runs.size());
  const Indices& configurations = fit.configurations();
  const std::size_t different = 1 + *std::max_element(configurations.begin(), configurations.end());
  if (different == 1) return errors;
  const std::size_t parts = std::min(different, most_parts);
  for (std::size_t part = 0; part < parts; ++part) {
    tell(watch, "fitting without part", static_cast<std::int64_t>(part), static_cast<std::int64_t>(parts));
    Indices seen;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (configurations[i] % parts != part) seen.push_back(i);
    }
    const Rates rates = fit.rates(seen, fit.told(seen));
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (configurations[i] % parts == part) errors[i] = error_under(runs[i], rates);
    }
  }
  return errors;
}

void check_names(const std::vector<MeasuredCase>& fitted, const std::vector<MeasuredCase>& held_out,
                 const std::string& file) {
  if (fitted.empty()) throw InputError(file, "holds no run that can be predicted and fitted to");
  if (fitted.size() > most_fitted_runs) {
    throw InputError(file, fmt::format("has {} runs to fit to, and at most {} can be: choose some by --fit",
                                       fitted.size(), most_fitted_runs));
  }
  std::vector<Problem> problems;
  std::set<std::string> names;
  for (const auto* runs : {&fitted, &held_out}) {
    for (const MeasuredCase& run : *runs) {
      if (!names.insert(run.name).second)
        problems.push_back({file, "'" + run.name + "' is the name of two runs"});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

std::string names_of(const std::vector<MeasuredCase>& runs) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(runs.size(), most_named); ++i)
    names.push_back("'" + runs[i].name + "'");
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (runs.size() > most_named) text += fmt::format(" and {} more", runs.size() - most_named);
  return text;
}

std::string source_of(const std::vector<MeasuredCase>& runs, const RunCalibration& result,
                      const std::string& file) {
  std::vector<double> before;
  std::vector<double> left_out;
  for (const RunError& run : result.runs) {
    if (!run.fitted || !run.left_out) continue;
    before.push_back(run.before);
    left_out.push_back(*run.left_out);
  }
  const std::string to = fmt::format("Fitted by headroom calibrate to the iteration time of {} {} of {} ({})",
                                     runs.size(), runs.size() == 1 ? "run" : "runs", file, names_of(runs));
  if (left_out.empty()) return to + "; there is no other configuration to show how well it predicts";
  return to + fmt::format("; median error of runs left out {:.1f}%, {:.1f}% before",
                          100 * median_absolute(left_out), 100 * median_absolute(before));
}

void warn_of_worth(const RunCalibration& result, std::vector<std::string>& warnings) {
  std::vector<double> before;
  std::vector<double> unseen;
  for (const RunError& run : result.runs) {
    const std::optional<double> after = run.fitted ? run.left_out : run.after;
    if (!after) continue;
    before.push_back(run.before);
    unseen.push_back(*after);
  }
  if (unseen.empty()) {
    warnings.emplace_back(
        "no run is held out: a single configuration cannot show how well its fit predicts another");
  } else if (median_absolute(unseen) >= median_absolute(before)) {
    warnings.emplace_back(
        "the fit predicts runs that it was not fitted to no better than the base does: keep the base, or "
        "use the fit for its interval alone");
  }
}

// Sizes outside the range of the base's rates: errors of such predictions go into the scalars.
void warn_of_extrapolation(const std::vector<MeasuredCase>& runs, std::vector<std::string>& warnings) {
  std::map<std::string, std::size_t> counts;
  for (const MeasuredCase& run : runs) {
    for (const Warning& warning : account(evaluate(run.request)).warnings) {
      if (warning.code.starts_with("extrapolated_")) ++counts[warning.code];
    }
  }
  for (const auto& [code, count] : counts) {
    warnings.push_back(
        fmt::format("{} in {} of {} fitted runs: the fitted values also make up for errors of "
                    "the base's rates beyond the sizes that they were fitted on",
                    code, count, runs.size()));
  }
}

void warn_of_untold(const std::vector<MeasuredCase>& held_out, const std::vector<Efficiency>& told,
                    const System& base, std::vector<std::string>& warnings) {
  for (const Efficiency& it : efficiencies()) {
    if (std::find(told.begin(), told.end(), it) != told.end()) continue;
    std::vector<MeasuredCase> depend;
    for (const MeasuredCase& run : held_out) {
      if (dependence(run, it, base.performance->rates) >= worth_a_note) depend.push_back(run);
    }
    if (depend.empty()) continue;
    warnings.push_back(
        fmt::format("{} is kept from {}: the fitted runs do not determine it, but held-out runs "
                    "depend on it: {}",
                    it.name, base.name, names_of(depend)));
  }
}

std::vector<MeasuredCase> on_system(std::vector<MeasuredCase> runs, const System& system) {
  for (MeasuredCase& run : runs) run.request.system = system;
  return runs;
}

}  // namespace

std::string unexplained(const MeasuredCase& run, const System& base) {
  EXPECTS(base.performance.has_value());
  const Rates& before = base.performance->rates;
  Rates fastest = before;
  Rates slowest = before;
  for (const Efficiency& it : efficiencies()) {
    set_efficiency(fastest, it, most_value(it, before), before);
    set_efficiency(slowest, it, least_value(it, before), before);
  }
  const double measured = iteration_of(run).value;
  const auto told = [&](const char* limit, Seconds at_limit, const char* where) {
    return fmt::format(
        "took {:.4g} s and {} {:.4g} s on {} with all efficiencies {} (docs/calibration.md): its "
        "configuration, its units or its system are not as stated",
        measured, limit, at_limit.count(), base.name, where);
  };
  const Seconds least = iteration_under(run, fastest);
  const Seconds most = iteration_under(run, slowest);
  if (measured * (1 + explained) < least.count()) return told("must take at least", least, "at their most");
  if (measured > most.count() * (1 + explained)) return told("can take at most", most, "at their least");
  return {};
}

RunCalibration calibrate_to_runs(const std::vector<MeasuredCase>& fitted,
                                 const std::vector<MeasuredCase>& held_out, const System& base,
                                 const Spreads& spreads, const std::string& file, const Watch& watch) {
  EXPECTS(base.performance.has_value());
  check_names(fitted, held_out, file);
  const Rates& before = base.performance->rates;
  const Fit fit(fitted, before);
  Indices all(fitted.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<Efficiency> told = fit.told(all);
  if (told.empty()) {
    throw InputError(
        file,
        "determines no efficiency: the times of its runs hardly depend on any of them, but on the "
        "host, on latencies or on waiting");
  }
  RunCalibration result{.system = base};
  Rates& rates = result.system.performance->rates;
  rates = fit.rates(all, told);

  const std::vector<std::optional<double>> left_out = left_out_errors(fitted, fit, watch);
  const auto add = [&](const std::vector<MeasuredCase>& runs, bool were_fitted) {
    const std::vector<double> then = errors_under(runs, before);
    const std::vector<double> now = errors_under(runs, rates);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      result.runs.push_back({.name = runs[i].name,
                             .fitted = were_fitted,
                             .measured = Seconds(iteration_of(runs[i]).value),
                             .before = then[i],
                             .after = now[i],
                             .left_out = were_fitted ? left_out[i] : std::nullopt});
    }
  };
  add(fitted, true);
  add(held_out, false);

  const std::string source = source_of(fitted, result, file);
  const std::vector<Parameter> parameters = fit.parameters(told);
  for (std::size_t i = 0; i < told.size(); ++i) {
    const bool bound = on_bound(parameters[i], rate_value(rates, told[i].rates.front()));
    for (const std::string_view rate : told[i].rates) {
      set_fitted(rates, rate, bound, source);
      result.fitted.push_back({std::string(rate), rate_value(rates, rate), rate_value(before, rate), bound});
    }
  }
  for (const FittedRate& rate : result.fitted) {
    if (!rate.bound) continue;
    result.warnings.push_back(fmt::format(
        "{} reached a bound of its range: what is still wrong with the predictions has another cause",
        rate.name));
  }
  // If held-out runs do not determine a spread: the earlier one, or that of an assumed clock if the clock
  // ended at a bound.
  const Spread on_base = widest_spread(fitted, spreads);
  result.spread_before = on_base.logarithm;
  result.system.performance->run_spread.reset();
  const Spread now = widest_spread(on_system(fitted, result.system), spreads);
  const Spread& untold = now.logarithm > on_base.logarithm ? now : on_base;
  result.system.performance->run_spread = run_spread(fitted, held_out, result.runs, untold, file);
  warn_of_worth(result, result.warnings);
  warn_of_extrapolation(fitted, result.warnings);
  warn_of_untold(held_out, told, base, result.warnings);
  return result;
}

}  // namespace headroom
