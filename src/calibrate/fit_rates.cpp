#include "headroom/calibrate/fit_rates.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fit_stages.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "missed_stages.hpp"
#include "rate_parameters.hpp"
#include "sample_checks.hpp"

namespace headroom {
namespace {

// The fastest protocol changes at a kink, which makes local minima. A fit therefore starts at several points,
// each with one parameter doubled or halved, and the best is kept.
std::vector<std::vector<Parameter>> starts_of(const std::vector<Parameter>& parameters) {
  std::vector<std::vector<Parameter>> all{parameters};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    for (const double factor : {0.5, 2.0}) {
      std::vector<Parameter>& start = all.emplace_back(parameters);
      start[i].start = std::clamp(factor * start[i].start, start[i].least, start[i].most);
    }
  }
  return all;
}

void fit_stage(const Stage& stage, Performance& performance) {
  const std::vector<Sample>& samples = *stage.samples;
  if (samples.size() < stage.parameters.size()) return;  // a part of what was dealt out can be this small
  const auto apply = [&](std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      set_rate(performance.rates, stage.parameters[i].name, values[i]);
    }
  };
  const auto residuals = [&](std::span<const double> values, std::span<double> out) {
    apply(values);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      out[i] = std::log(*predicted_time(samples[i], performance) / samples[i].median);
    }
  };
  std::optional<RobustFit> best;
  const SampleKind kind = stage.samples->front().kind;
  const bool kinks =  // which many tiles smooth over
      kind != SampleKind::matrix_product && kind != SampleKind::attention && kind != SampleKind::expert_block;
  for (const std::vector<Parameter>& start :
       kinks ? starts_of(stage.parameters) : std::vector<std::vector<Parameter>>{stage.parameters}) {
    RobustFit fit = fit_robustly(start, samples.size(), residuals, stage.scale);
    if (!best || fit.cost < best->cost) best = std::move(fit);
  }
  apply(best->values);
  for (const Parameter& parameter : stage.parameters) {
    round_rate(performance.rates, parameter.name);
    if (rate_value(performance.rates, parameter.name) > parameter.most)  // rounded up from its bound
      set_rate(performance.rates, parameter.name, parameter.most);
  }
}

constexpr std::string_view fit_step = "fit";
constexpr std::int64_t fit_count =
    1 + static_cast<std::int64_t>(parts);  // to all samples, and without each part

std::vector<Sample> all_samples(const std::vector<SampleSet>& sets) {
  std::vector<Sample> all;
  for (const SampleSet& set : sets) all.insert(all.end(), set.samples.begin(), set.samples.end());
  return merge_repeated(all);
}

// Returns the samples, each predicted by rates fitted without its shape.
std::vector<ReplayedSample> held_out_rows(const std::vector<Sample>& samples, const Performance& base,
                                          const Watch& watch) {
  std::vector<ReplayedSample> rows;
  for (std::uint64_t part = 0; part < parts; ++part) {
    tell(watch, fit_step, static_cast<std::int64_t>(part) + 1, fit_count);
    std::vector<Sample> seen;
    std::vector<Sample> unseen;
    for (const Sample& sample : samples)
      (shape_hash(sample) % parts == part ? unseen : seen).push_back(sample);
    Performance performance = base;
    performance.rates = fit_rates(seen, base);
    for (ReplayedSample& row : replay(unseen, performance).rows) rows.push_back(std::move(row));
  }
  return rows;
}

// Returns the 80% interval of measured over predicted time, over samples of the kinds that share rates.
HeldOutRatios ratios_of(const std::vector<ReplayedSample>& rows, const auto& wanted) {
  std::vector<double> ratios;
  for (const ReplayedSample& row : rows) {
    if (wanted(row)) ratios.push_back(row.sample.median / row.predicted);
  }
  if (ratios.empty()) return std::nullopt;
  const auto rounded = [](double ratio) { return std::round(1e4 * ratio) / 1e4; };
  return FittedRange{rounded(quantile(ratios, 0.1)), rounded(quantile(ratios, 0.9))};
}

// Records whether each row lies in the interval that the rows of the other parts make.
void judge_intervals(std::vector<ReplayedSample>& rows) {
  std::map<std::pair<RatesOf, std::uint64_t>, HeldOutRatios> intervals;
  for (const ReplayedSample& row : rows) {
    const std::pair key(rates_of(row.sample), shape_hash(row.sample) % parts);
    if (intervals.contains(key)) continue;
    intervals[key] = ratios_of(rows, [&](const ReplayedSample& other) {
      return rates_of(other.sample) == key.first && shape_hash(other.sample) % parts != key.second;
    });
  }
  for (ReplayedSample& row : rows) {
    const HeldOutRatios& interval = intervals[{rates_of(row.sample), shape_hash(row.sample) % parts}];
    row.in_interval = std::nullopt;
    if (interval && rates_of(row.sample).kind != RateKind::none)
      row.in_interval = holds(*interval, row.sample.median / row.predicted);
  }
}

// The interval of GEMMs comes from bursts: it belongs to the rates of tiles, which a sustained load does not
// show.
void set_ratios(const std::vector<ReplayedSample>& rows, Rates& rates) {
  const auto set = [&](const RatesOf& which, HeldOutRatios& ratios) {
    const HeldOutRatios found =
        ratios_of(rows, [&](const ReplayedSample& row) { return rates_of(row.sample) == which; });
    if (found) ratios = found;
  };
  set({RateKind::products, std::nullopt}, rates.products.held_out_ratios);
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    if (auto& own = rates.products_by_dtype[i]) set({RateKind::products, i}, own->products.held_out_ratios);
  }
  if (rates.grouped_products) set({RateKind::experts, std::nullopt}, rates.grouped_products->held_out_ratios);
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    auto& own = rates.products_by_dtype[i];
    if (own && own->grouped) set({RateKind::experts, i}, own->grouped->held_out_ratios);
  }
  set({RateKind::attention, std::nullopt}, rates.flash_attention.held_out_ratios);
  set({RateKind::collectives, std::nullopt}, rates.collectives.held_out_ratios);
  set({RateKind::streaming, std::nullopt}, rates.streaming.held_out_ratios);
}

void widen(FittedRange& range, double size) {
  range.least = range.least == 0 ? size : std::min(range.least, size);
  range.most = std::max(range.most, size);
}

void set_ranges(const std::vector<Sample>& products, MatrixProductRates& rates) {
  if (!products.empty()) rates.fitted_sides = rates.fitted_inner = {};
  for (const Sample& sample : products) {
    widen(rates.fitted_sides, static_cast<double>(sample.product.rows));
    widen(rates.fitted_sides, static_cast<double>(sample.product.columns));
    widen(rates.fitted_inner, static_cast<double>(sample.product.inner));
  }
}

void set_ranges(const std::vector<Sample>& experts, std::optional<GroupedProductRates>& rates) {
  if (experts.empty()) return;
  rates->fitted_rows = {};
  for (const Sample& sample : experts) widen(rates->fitted_rows, rows_of_expert(sample.expert_block));
}

void set_ranges(const SortedSamples& samples, Rates& rates) {
  set_ranges(samples.products, rates.products);
  set_ranges(samples.experts, rates.grouped_products);
  for (std::size_t i = 0; i < narrow_types.size(); ++i) {
    auto& own = rates.products_by_dtype[i];
    if (own) set_ranges(samples.narrow[i].products, own->products);
    if (own) set_ranges(samples.narrow[i].experts, own->grouped);
  }
  FlashRates& flash = rates.flash_attention;
  if (!samples.attention.empty()) flash.fitted_queries = flash.fitted_head_sizes = {};
  for (const Sample& sample : samples.attention) {
    widen(flash.fitted_queries, static_cast<double>(sample.attention.queries));
    widen(flash.fitted_head_sizes, static_cast<double>(sample.attention.head_size));
  }
  if (!samples.collectives.empty()) rates.collectives.fitted_ranks = rates.collectives.fitted_bytes = {};
  for (const Sample& sample : samples.collectives) {
    widen(rates.collectives.fitted_ranks, static_cast<double>(sample.ranks));
    widen(rates.collectives.fitted_bytes, sample.bytes.count());
  }
}

std::string source_of(const Stage& stage, const std::vector<SampleSet>& sets,
                      const std::vector<ErrorGroup>& held_out) {
  std::string source = fmt::format("Fitted by headroom calibrate to {} {} of {}", stage.samples->size(),
                                   stage.what, files_of(stage, sets));
  for (const std::string& name : stage.groups) {
    const auto group = std::find_if(held_out.begin(), held_out.end(),
                                    [&](const ErrorGroup& each) { return each.name == name; });
    if (group == held_out.end()) continue;
    return source +
           fmt::format(
               "; held out by thirds, {} are met within {:.1f}% median and {:.1f}% at the 90th percentile",
               group->name, 100 * group->median_absolute, 100 * group->percentile_90_absolute);
  }
  return source;
}

void warn_of_few(const std::vector<Stage>& stages, std::vector<std::string>& warnings) {
  for (const Stage& stage : stages) {
    const std::size_t count = stage.samples->size();
    if (count >= few_shapes) continue;
    warnings.push_back(fmt::format("{} rests on {} shape{} of {}: little judges it",
                                   stage.parameters.front().name, count, count == 1 ? "" : "s", stage.what));
  }
}

// Returns the names of the rates that a stage fits.
std::string fitted_by(const std::vector<Stage>& stages, RateKind kind) {
  std::vector<std::string> names;
  for (const Stage& stage : stages) {
    if (stage.rates.kind != kind) continue;
    for (const Parameter& parameter : stage.parameters) names.push_back(parameter.name);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

void warn_of_what_is_left(const SortedSamples& samples, const std::vector<Stage>& stages,
                          const SampleReplay& fit, const std::string& base,
                          std::vector<std::string>& warnings) {
  const std::string collectives_in_steps = fitted_by(stages, RateKind::collectives_in_steps);
  // `alone` names the rates that samples of training steps determine by themselves.
  const auto kept = [&](const std::vector<Sample>& of, const char* rates, const std::vector<Sample>& in_steps,
                        const char* alone) {
    if (!of.empty()) return;
    const std::string only = in_steps.empty() ? "" : fmt::format(" but {}", alone);
    warnings.push_back(fmt::format("rates of {}{} are not fitted and stay those of {}", rates, only, base));
  };
  kept(samples.products, "matrix products", samples.sustained, "products.sustained");
  kept(samples.attention, "flash attention",
       samples.attention_sustained.empty() ? samples.attention_backward : samples.attention_sustained,
       samples.attention_sustained.empty()  ? "flash_attention.backward"
       : samples.attention_backward.empty() ? "flash_attention.sustained"
                                            : "flash_attention.sustained and flash_attention.backward");
  kept(samples.collectives, "collectives", samples.collectives_in_steps, collectives_in_steps.c_str());
  kept(samples.streaming, "streaming kernels", samples.streaming_in_steps, "streaming.bandwidth_share");
  for (const SampleKind kind : {SampleKind::all_to_all, SampleKind::send_receive}) {
    const auto count = std::count_if(fit.rows.begin(), fit.rows.end(),
                                     [&](const ReplayedSample& row) { return row.sample.kind == kind; });
    if (count == 0) continue;
    warnings.push_back(
        fmt::format("{} samples of {} are predicted by the rates of collectives, but none is fitted to them",
                    count, name_of(kind)));
  }
  for (const auto& [kind, count] : fit.unmodelled) {
    warnings.push_back(fmt::format("{} samples of {} are not used: the time model has no equation for them",
                                   count, name_of(kind)));
  }
}

}  // namespace

Rates fit_rates(const std::vector<Sample>& samples, const Performance& base) {
  const SortedSamples by_rate = sorted(samples);
  Performance performance = with_rates_of(by_rate, base);
  for (const Stage& stage : stages_of(by_rate, base)) fit_stage(stage, performance);
  return performance.rates;
}

Calibration calibrate(const std::vector<SampleSet>& sets, const System& base, const Watch& watch) {
  EXPECTS(base.performance.has_value());
  Calibration result{.system = base, .warnings = check_samples(sets, base)};
  const std::vector<Sample> samples = all_samples(sets);
  const SortedSamples by_rate = sorted(samples);
  Performance& performance = *result.system.performance;
  performance.run_spread.reset();  // of other rates
  tell(watch, fit_step, 0, fit_count);
  performance.rates = fit_rates(samples, *base.performance);
  const Performance unfitted = with_rates_of(by_rate, *base.performance);
  set_ranges(by_rate, performance.rates);
  std::vector<ReplayedSample> held_out = held_out_rows(samples, *base.performance, watch);
  const std::vector<Stage> stages = stages_of(by_rate, performance);
  const std::vector<MissedStage> missed = missed_stages(stages, held_out, performance, sets);
  if (const auto others = sets_that_are_met(missed, stages.size(), sets)) {
    Calibration rest = calibrate(*others, base, watch);
    for (const MissedStage& stage : missed) {
      rest.warnings.push_back(fmt::format("{} are left out, and their rates stay those of {}: {}: {}",
                                          stage.what, base.name, stage.problem.where, stage.problem.rule));
    }
    return rest;
  }
  warn_of_few(stages, result.warnings);
  set_ratios(held_out, performance.rates);
  judge_intervals(held_out);
  result.held_out = error_groups(held_out);
  for (const Stage& stage : stages) {
    const std::string source = source_of(stage, sets, result.held_out);
    for (const Parameter& parameter : stage.parameters) {
      const double value = rate_value(performance.rates, parameter.name);
      const double before = rate_value(unfitted.rates, parameter.name);
      const bool bound = on_bound(parameter, value);
      set_fitted(performance.rates, parameter.name, bound, source);
      result.fitted.push_back({parameter.name, value, before, bound});
    }
  }
  result.fit = replay(samples, performance);
  warn_of_what_is_left(by_rate, stages, result.fit, base.name, result.warnings);
  return result;
}

}  // namespace headroom
