#include "headroom/answer/validate.hpp"

#include <algorithm>
#include <utility>

#include "headroom/core/expects.hpp"
#include "headroom/io/spreads_file.hpp"

namespace headroom {
namespace {

Coverage coverage_of(const std::vector<Comparison>& rows, Measure measure) {
  Coverage coverage{.measure = measure};
  for (const Comparison& row : rows) {
    if (row.measure != measure || !row.in_interval) continue;
    ++coverage.intervals;
    if (*row.in_interval) ++coverage.covered;
  }
  return coverage;
}

}  // namespace

ValidateReply answer(const ValidateQuestion& question, const Watch& watch) {
  const auto& [cases, targets] = question.measurements;
  ValidateReply reply{.runs = cases.size(),
                      .groups = {},
                      .rows = compare(cases, targets, embedded_spreads(), question.group_by, watch),
                      .coverage = {},
                      .skipped = question.skipped,
                      .unread = question.unread,
                      .judged = {}};
  reply.groups = summarize(reply.rows, targets);
  for (const Measure measure : {Measure::iteration_seconds, Measure::allocated_bytes}) {
    const Coverage coverage = coverage_of(reply.rows, measure);
    if (coverage.intervals > 0) reply.coverage.push_back(coverage);
  }
  if (question.choices) {
    std::vector<MeasuredChoice> choices = choices_among(cases, embedded_spreads());
    SharedErrors errors = fitted_errors(choices);
    reply.judged = JudgedChoices{.choices = std::move(choices), .errors = std::move(errors)};
  }
  return reply;
}

bool met(const ValidateReply& reply) {
  return std::all_of(reply.groups.begin(), reply.groups.end(),
                     [](const GroupSummary& group) { return group.met; });
}

std::vector<Problem> problems_of(const ValidateSamplesQuestion& question) {
  const System& system = question.system;
  std::vector<Problem> problems;
  for (const SampleSet& set : question.sets) {
    if (set.device.empty() || system.device.empty() || same_device(set.device, system.device)) continue;
    problems.push_back(
        {set.file, "holds samples of '" + set.device + "', and " + system.name + " has " + system.device});
  }
  return problems;
}

ValidateSamplesReply answer(const ValidateSamplesQuestion& question) {
  EXPECTS(question.system.performance.has_value());
  if (std::vector<Problem> problems = problems_of(question); !problems.empty()) {
    throw InputError(std::move(problems));
  }
  std::vector<Sample> samples;
  for (const SampleSet& set : question.sets) {
    samples.insert(samples.end(), set.samples.begin(), set.samples.end());
  }
  ValidateSamplesReply reply{.system = question.system,
                             .replay = replay(samples, *question.system.performance)};
  if (reply.replay.rows.empty()) {
    throw InputError("samples", "holds none that the time model has an equation for");
  }
  for (const ReplayedSample& row : reply.replay.rows) {
    if (row.in_interval) ++reply.intervals;
    if (row.in_interval.value_or(false)) ++reply.covered;
  }
  return reply;
}

}  // namespace headroom
