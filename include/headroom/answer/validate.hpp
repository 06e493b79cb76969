// Questions of `headroom validate`: how well measured runs and measured samples are predicted.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "headroom/calibrate/choices.hpp"
#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/run_cases.hpp"

namespace headroom {

struct ValidateQuestion {
  Measurements measurements;
  std::vector<SkippedRun> skipped;  // runs that cannot be cases; passed on to the reply
  std::vector<UnreadMember> unread = {};
  std::vector<RunTrait> group_by;  // besides the source, for rows without a target
  bool choices = false;            // judge choices among runs of one question
};

// For all rows of a measure: those with an 80% interval, and those whose measured value is in it.
struct Coverage {
  Measure measure{};
  std::size_t intervals = 0;
  std::size_t covered = 0;
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

// Choices among runs of one question, and what their strategies share of their errors.
struct JudgedChoices {
  std::vector<MeasuredChoice> choices;
  SharedErrors errors;
};

struct ValidateReply {
  std::size_t runs = 0;  // predicted runs; a run may have several rows
  std::vector<GroupSummary> groups;
  std::vector<Comparison> rows;
  std::vector<Coverage>
      coverage;  // of iteration times and allocated memory, if one of their rows has an interval
  std::vector<SkippedRun> skipped;
  std::vector<UnreadMember> unread;
  std::optional<JudgedChoices> judged;  // if asked for
};

// Compares runs with predictions. Throws InputError, by case, if a request is not legal.
ValidateReply answer(const ValidateQuestion& question, const Watch& watch = {});

// Returns whether every group with a target meets it.
bool met(const ValidateReply& reply);

// Question about kernels and collectives instead of runs.
struct ValidateSamplesQuestion {
  std::vector<SampleSet> sets;
  System system;  // with performance figures; its rates predict the samples
};

struct ValidateSamplesReply {
  System system;
  SampleReplay replay;
  std::size_t intervals = 0;  // samples with an 80% interval
  std::size_t covered = 0;    // samples that are in their interval
  friend bool operator==(const ValidateSamplesReply&, const ValidateSamplesReply&) = default;
};

// Returns the sets that come from another GPU than the system's.
std::vector<Problem> problems_of(const ValidateSamplesQuestion& question);

// Compares samples with predictions. Throws InputError with problems_of() the question, and if the time model
// has an equation for none of the samples.
ValidateSamplesReply answer(const ValidateSamplesQuestion& question);

}  // namespace headroom
