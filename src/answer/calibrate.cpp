#include "headroom/answer/calibrate.hpp"

#include <cmath>
#include <optional>

#include "headroom/core/error.hpp"
#include "headroom/io/spreads_file.hpp"

namespace headroom {
namespace {

// Of the runs for which `error` gives one.
template <class Error>
RunErrors errors_of_runs(const std::vector<RunError>& runs, Error error) {
  std::vector<double> absolute;
  for (const RunError& run : runs) {
    if (const std::optional<double> it = error(run)) absolute.push_back(std::abs(*it));
  }
  if (absolute.empty()) return {};
  return {
      .runs = absolute.size(), .median_absolute = median(absolute), .worst_absolute = quantile(absolute, 1)};
}

// Of those that were fitted, or of those held out.
RunErrors errors_of_runs(const std::vector<RunError>& runs, bool fitted, double RunError::*error) {
  return errors_of_runs(runs, [&](const RunError& run) {
    return run.fitted == fitted ? std::optional(run.*error) : std::nullopt;
  });
}

}  // namespace

CalibrateReply answer(const CalibrateQuestion& question, const Watch& watch) {
  std::vector<SampleSet> sets = question.sets;
  std::vector<Problem> problems;
  for (const Profile& profile : question.profiles) {
    if (const auto problem = problem_of(profile)) problems.push_back(*problem);
    sets.push_back(profile.samples);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return {.calibration = calibrate(sets, question.base, watch), .profiles = question.profiles};
}

CalibrateToRunsReply answer(const CalibrateToRunsQuestion& question, const Watch& watch) {
  const auto& [fitted, held_out, skipped] = question.runs;
  if (fitted.empty() && !skipped.empty()) {
    const std::size_t count = held_out.size() + skipped.size();
    throw InputError(question.files, "none of its " + std::to_string(count) + " runs can be fitted: '" +
                                         skipped.front().name +
                                         "', for one, is skipped: " + text_of(skipped.front()));
  }
  CalibrateToRunsReply reply{.calibration = calibrate_to_runs(fitted, held_out, question.base,
                                                              embedded_spreads(), question.files, watch),
                             .skipped = skipped};
  const std::vector<RunError>& runs = reply.calibration.runs;
  reply.fitted_before = errors_of_runs(runs, true, &RunError::before);
  reply.fitted_after = errors_of_runs(runs, true, &RunError::after);
  reply.left_out = errors_of_runs(runs, [](const RunError& run) { return run.left_out; });
  reply.held_out_before = errors_of_runs(runs, false, &RunError::before);
  reply.held_out_after = errors_of_runs(runs, false, &RunError::after);
  return reply;
}

}  // namespace headroom
