#include "headroom/calibrate/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/plan/allocator_use.hpp"

namespace headroom {
namespace {

Seconds forward_of(const Plan& plan) {
  return device_time(plan.timing->iteration.cost.kinds.front().forward);
}

Seconds backward_of(const Plan& plan) {
  const LayerCost& layer = plan.timing->iteration.cost.kinds.front();
  return device_time(layer.recompute) + device_time(backward(layer));
}

Throughput throughput_at(const Plan& plan, Seconds iteration) {
  const Request& request = plan.request;
  return throughput(plan.timing->flops, iteration, request.strategy, request.workload,
                    request.system.performance->device);
}

const Figure& measured_iteration(const MeasuredCase& it) {
  const auto figure = std::find_if(it.figures.begin(), it.figures.end(), [](const Figure& candidate) {
    return candidate.measure == Measure::iteration_seconds;
  });
  EXPECTS(figure != it.figures.end());
  return *figure;
}

// Returns the reserved memory of the peak rank, or its tensors' bytes if the allocator cannot be followed.
Bytes reserved_bytes(const Plan& plan) {
  return reserved_bytes(plan, static_cast<std::int64_t>(plan.peak_rank)).value_or(allocated(plan));
}

// Returns the predicted figure. `baseline` is the plan itself if the case has none.
double prediction(const MeasuredCase& it, Measure measure, const Plan& plan, const Plan& baseline) {
  switch (measure) {
    case Measure::forward_seconds: return forward_of(plan).count();
    case Measure::backward_seconds: return backward_of(plan).count();
    case Measure::layer_seconds: return (forward_of(plan) + backward_of(plan)).count();
    case Measure::relative_layer:
      return (forward_of(plan) + backward_of(plan)) / (forward_of(baseline) + backward_of(baseline));
    case Measure::iteration_seconds: return plan.timing->iteration.total.count();
    case Measure::gain: return baseline.timing->iteration.total / plan.timing->iteration.total - 1;
    case Measure::mfu: return plan.timing->throughput.mfu_full;
    case Measure::mfu_at_measured: return throughput_at(plan, Seconds(measured_iteration(it).value)).mfu_full;
    case Measure::hfu_paper_at_measured:
      return throughput_at(plan, Seconds(measured_iteration(it).value)).hfu_paper;
    case Measure::allocated_bytes: return allocated(plan).count();
    case Measure::reserved_bytes: return reserved_bytes(plan).count();
    case Measure::device_bytes: return (reserved_bytes(plan) + plan.ranks[plan.peak_rank].reserved).count();
  }
  EXPECTS(!"a measure without a prediction");
  return 0;
}

std::optional<bool> in_interval(Measure measure, double measured, const Plan& plan, const Spreads& spreads) {
  if (measure == Measure::iteration_seconds) {
    const Spread spread = iteration_spread(plan.request, spreads).spread;
    const IterationInterval interval = iteration_interval(plan.timing->iteration.total, spread);
    return interval.low.count() <= measured && measured <= interval.high.count();
  }
  if (measure == Measure::allocated_bytes) {
    const AllocatedInterval interval = allocated_interval(plan, spreads);
    return interval.low.count() <= measured && measured <= interval.high.count();
  }
  return std::nullopt;
}

// Returns how much a utilization at the measured time may differ because that time is printed rounded.
double allowance(const MeasuredCase& it, const Comparison& row) {
  if (row.measure != Measure::mfu_at_measured && row.measure != Measure::hfu_paper_at_measured) return 0;
  const Figure& time = measured_iteration(it);
  return row.predicted * time.rounding / time.value;
}

const Target* target_of(const std::string& source, Measure measure, const std::vector<Target>& targets) {
  const auto found = std::find_if(targets.begin(), targets.end(), [&](const Target& target) {
    return target.source == source && target.measure == measure;
  });
  return found == targets.end() ? nullptr : &*found;
}

// Rows without a target are grouped by measure, since errors of time and memory do not mix.
std::string group_of(const MeasuredCase& it, Measure measure, const Target* target,
                     const std::vector<RunTrait>& traits) {
  if (target != nullptr) return target->group;
  std::string rows = it.source + (traits.empty() ? "" : ", " + group_text(it.request, traits));
  if (measure == Measure::iteration_seconds) return rows;
  if (measure == Measure::reserved_bytes) return rows + ", reserved memory";
  return rows + (is_bytes(measure) ? ", memory" : ", " + std::string(name_of(measure)));
}

std::vector<Evaluation> evaluations_of(const std::vector<MeasuredCase>& cases, const Watch& watch) {
  std::vector<Evaluation> evaluations;
  std::vector<Problem> problems;
  for (const MeasuredCase& it : cases) {
    EXPECTS(it.request.system.performance);
    tell(watch, "predicting run", std::ssize(evaluations), std::ssize(cases));
    try {
      evaluations.push_back(evaluate(it.request));
    } catch (const InputError& error) {
      for (const auto& [where, rule] : error.problems()) problems.push_back({it.name + ": " + where, rule});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return evaluations;
}

std::size_t baseline_of(const std::vector<MeasuredCase>& cases, std::size_t index) {
  const MeasuredCase& it = cases[index];
  if (it.baseline.empty()) return index;
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const MeasuredCase& candidate) {
    return candidate.source == it.source && candidate.name == it.baseline;
  });
  EXPECTS(found != cases.end());
  return static_cast<std::size_t>(found - cases.begin());
}

}  // namespace

std::vector<Comparison> compare(const std::vector<MeasuredCase>& cases, const std::vector<Target>& targets,
                                const Spreads& spreads, const std::vector<RunTrait>& traits,
                                const Watch& watch) {
  const std::vector<Evaluation> evaluations = evaluations_of(cases, watch);
  std::vector<Comparison> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Plan& plan = account(evaluations[i]);
    const Plan& baseline = account(evaluations[baseline_of(cases, i)]);
    const bool fits = settled_verdict(evaluations[i]) != Verdict::does_not_fit;
    for (const auto& [measure, measured, rounding] : cases[i].figures) {
      const Target* target = target_of(cases[i].source, measure, targets);
      Comparison row{
          .group = group_of(cases[i], measure, target, traits), .name = cases[i].name, .measure = measure};
      row.predicted = prediction(cases[i], measure, plan, baseline);
      row.measured = measured;
      row.error = is_ratio(measure) ? row.predicted - measured : row.predicted / measured - 1;
      row.fits = fits;
      row.in_interval = in_interval(measure, measured, plan, spreads);
      if (measure == Measure::iteration_seconds) row.step_rates = step_rates(plan.request);
      if (target != nullptr && target->worst) row.tolerance = *target->worst + allowance(cases[i], row);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

double median(std::vector<double> values) {
  EXPECTS(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool within(double error, double tolerance) {
  constexpr double rounding = 1e-9;
  return std::abs(error) <= tolerance + rounding;
}

std::vector<GroupSummary> summarize(const std::vector<Comparison>& rows, const std::vector<Target>& targets) {
  std::vector<GroupSummary> summaries;
  for (const Comparison& first : rows) {
    const auto same = [&](const auto& it) { return it.group == first.group; };
    if (std::any_of(summaries.begin(), summaries.end(), same)) continue;
    GroupSummary summary{.group = first.group, .ratios = is_ratio(first.measure)};
    std::vector<double> absolute;
    bool rows_within = true;
    for (const Comparison& row : rows) {
      if (!same(row)) continue;
      absolute.push_back(std::abs(row.error));
      rows_within = rows_within && (!row.tolerance || within(row.error, *row.tolerance));
      summary.mean += row.error;
      summary.mean_absolute += absolute.back();
      if (row.in_interval) ++summary.intervals;
      if (row.in_interval.value_or(false)) ++summary.covered;
    }
    summary.rows = absolute.size();
    summary.mean /= static_cast<double>(summary.rows);
    summary.mean_absolute /= static_cast<double>(summary.rows);
    summary.worst_absolute = *std::max_element(absolute.begin(), absolute.end());
    summary.median_absolute = median(std::move(absolute));
    if (const auto target = std::find_if(targets.begin(), targets.end(), same); target != targets.end()) {
      summary.target = *target;
      const auto holds = [](double value, std::optional<double> limit) {
        return !limit || within(value, *limit);
      };
      summary.met = rows_within && holds(summary.median_absolute, target->median) &&
                    holds(summary.mean_absolute, target->mean);
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace headroom
