#include "headroom/answer/validate.hpp"

#include <algorithm>

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

ValidateReply answer(const ValidateQuestion& question) {
  const auto& [cases, targets] = question.measurements;
  ValidateReply reply{.groups = {},
                      .rows = compare(cases, targets, embedded_spreads()),
                      .coverage = {},
                      .skipped = question.skipped};
  reply.groups = summarize(reply.rows, targets);
  for (const Measure measure : {Measure::iteration_seconds, Measure::allocated_bytes}) {
    const Coverage coverage = coverage_of(reply.rows, measure);
    if (coverage.intervals > 0) reply.coverage.push_back(coverage);
  }
  return reply;
}

bool met(const ValidateReply& reply) {
  return std::all_of(reply.groups.begin(), reply.groups.end(),
                     [](const GroupSummary& group) { return group.met; });
}

}  // namespace headroom
