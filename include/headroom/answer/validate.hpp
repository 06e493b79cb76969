// How well measured runs are predicted, and how well measured samples: the questions of `headroom validate`.
#pragma once

#include <cstddef>
#include <vector>

#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

struct ValidateQuestion {
  Measurements measurements;
  std::vector<SkippedRun> skipped;  // the runs of which no case could be made, for the reply to tell
  std::vector<UnreadMember> unread = {};
  std::vector<RunTrait> group_by;  // beside the source, of rows without a target
};

// Of all rows of a measure, those that have an 80% interval, and those that lie in it.
struct Coverage {
  Measure measure{};
  std::size_t intervals = 0;
  std::size_t covered = 0;
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

struct ValidateReply {
  std::size_t runs = 0;  // that were predicted; a run may have several rows
  std::vector<GroupSummary> groups;
  std::vector<Comparison> rows;
  std::vector<Coverage>
      coverage;  // of iteration times and of allocated memory, where a row of them has an interval
  std::vector<SkippedRun> skipped;
  std::vector<UnreadMember> unread;
};

// Throws InputError, by case, where a request is not legal.
ValidateReply answer(const ValidateQuestion& question);

// Whether every group with a target meets it.
bool met(const ValidateReply& reply);

// Kernels and collectives instead of runs.
struct ValidateSamplesQuestion {
  std::vector<SampleSet> sets;
  System system;  // with performance figures: the rates that the samples are compared with
};

struct ValidateSamplesReply {
  System system;
  SampleReplay replay;
  std::size_t intervals = 0;  // samples that have an 80% interval, since their rates have one,
  std::size_t covered = 0;    // and those of them that lie in it
  friend bool operator==(const ValidateSamplesReply&, const ValidateSamplesReply&) = default;
};

// The sets that are of another device than the system.
std::vector<Problem> problems_of(const ValidateSamplesQuestion& question);

// Throws InputError with those problems, and where the time model has an equation for none of the samples.
ValidateSamplesReply answer(const ValidateSamplesQuestion& question);

}  // namespace headroom
