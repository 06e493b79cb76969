#include "missed_stages.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace headroom {
namespace {

// Largest median held-out error for which samples can be what they are said to be.
constexpr double most_missed = 0.5;

// Returns whether the samples come from a profile of a training step, whose kernels nobody chose.
bool is_of_steps(const RatesOf& rates) {
  return rates.kind == RateKind::sustained || rates.kind == RateKind::attention_sustained ||
         rates.kind == RateKind::collectives_in_steps || rates.kind == RateKind::streaming_in_steps;
}

std::vector<SampleSet> without(std::vector<SampleSet> sets, const std::vector<MissedStage>& missed) {
  const auto is_missed = [&](const Sample& sample) {
    return std::any_of(missed.begin(), missed.end(),
                       [&](const MissedStage& stage) { return rates_of(sample) == stage.rates; });
  };
  for (SampleSet& set : sets) std::erase_if(set.samples, is_missed);
  std::erase_if(sets, [](const SampleSet& set) { return set.samples.empty(); });
  return sets;
}

}  // namespace

std::string files_of(const Stage& stage, const std::vector<SampleSet>& sets) {
  std::vector<std::string> files;
  for (const SampleSet& set : sets) {
    const bool used = std::any_of(set.samples.begin(), set.samples.end(),
                                  [&](const Sample& sample) { return rates_of(sample) == stage.rates; });
    if (used) files.push_back(set.environment.empty() ? set.file : set.file + " (" + set.environment + ")");
  }
  return fmt::format("{}", fmt::join(files, " and "));
}

std::vector<MissedStage> missed_stages(const std::vector<Stage>& stages,
                                       const std::vector<ReplayedSample>& held_out, const Performance& fitted,
                                       const std::vector<SampleSet>& sets) {
  std::vector<MissedStage> missed;
  for (const Stage& stage : stages) {
    const bool few = stage.samples->size() < few_shapes;
    const std::vector<ReplayedSample> met = few ? replay(*stage.samples, fitted).rows : held_out;
    std::vector<double> errors;
    for (const ReplayedSample& row : met) {
      if (rates_of(row.sample) == stage.rates) errors.push_back(std::abs(row.error));
    }
    const double median = quantile(std::move(errors), 0.5);
    if (median <= most_missed) continue;
    const bool on_links =
        stage.rates.kind == RateKind::collectives || stage.rates.kind == RateKind::collectives_in_steps;
    missed.push_back(
        {stage.rates,
         stage.what,
         {files_of(stage, sets),
          fmt::format("rates within the bounds of the device's data sheet miss the {} by {:.0f}% (median{}): "
                      "are the times in the unit named, and of this device{}?",
                      stage.what, 100 * median, few ? "" : ", held out",
                      on_links ? " and its links, with ranks on nodes as large as the base's" : "")}});
  }
  return missed;
}

std::optional<std::vector<SampleSet>> sets_that_are_met(const std::vector<MissedStage>& missed,
                                                        std::size_t stages,
                                                        const std::vector<SampleSet>& sets) {
  if (missed.empty()) return {};
  const bool of_steps = std::all_of(missed.begin(), missed.end(),
                                    [](const MissedStage& stage) { return is_of_steps(stage.rates); });
  if (of_steps && missed.size() < stages) return without(sets, missed);
  std::vector<Problem> problems(missed.size());
  std::transform(missed.begin(), missed.end(), problems.begin(),
                 [](const MissedStage& stage) { return stage.problem; });
  throw InputError(std::move(problems));
}

}  // namespace headroom
