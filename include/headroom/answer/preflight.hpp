// Question of `headroom check` for a launch file: does this job start, does it fit, and what should change?
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/answer/estimate.hpp"
#include "headroom/core/names.hpp"
#include "headroom/interop/launched_run.hpp"

namespace headroom {

struct PreflightQuestion {
  std::string file;
  LaunchedRun run;                // as it was read
  Request request;                // what it asks for, on the system in question
  std::int64_t devices = 0;       // GPUs of the job, which its parallel sizes need not divide
  std::vector<Problem> problems;  // rules that it is already known to break, by field
  Training training;              // cost of a training run, if its tokens are known
  // As the file was read, to ask for a patch of it.
  std::optional<LaunchOptions> patched;
};

// A rule that the job breaks, and where.
struct PreflightFinding {
  Problem problem;       // by field
  std::string written;   // the setting at fault, as the file has it; empty: the file does not say it
  FilePlace at;          // its line, or the file as a whole
  std::string source;    // of the rule: the launcher's file and line
  bool modelled = true;  // false: a limit of the stack's file here, which the framework may not have
  friend bool operator==(const PreflightFinding&, const PreflightFinding&) = default;
};

// A change that the text of the file can be given.
struct PreflightPatch {
  std::size_t change = 0;  // of PreflightReply::changes
  std::string diff;        // of the file, as `diff -u` writes it
};

// starts: legal and fits, though perhaps with little memory to spare. refused: breaks a rule of the framework.
// not_modelled: the framework may start it, but Headroom's stack has no place for it. without_model: the model's sizes are
// not known; all other settings were read. unread: the file cannot be read, or needs values that
// only its user can give.
enum class PreflightOutcome : std::uint8_t {
  starts,
  refused,
  not_modelled,
  does_not_fit,
  without_model,
  unread
};

struct PreflightReply {
  std::string file;
  LaunchedRun run;           // without a framework if nothing of the file could be read
  bool unread = false;       // the findings say why no run was read
  std::int64_t devices = 0;  // of the question
  std::vector<PreflightFinding> findings;
  // Absent if a rule other than the number of GPUs is broken.
  std::optional<EstimateReply> estimate;
  // GPUs that the estimate is for, if the job's own number is not a multiple of its parallel sizes.
  std::optional<std::int64_t> estimated_devices;
  // Up to three changes that matter most, the best first: those that make it legal and fit, or make it fit,
  // or make it faster. Each was evaluated.
  std::vector<Alternative> changes;
  // False if the framework refuses the job even with any of the changes: none edits every setting at fault.
  bool mended = true;
  // Of the change with the fewest fields that the file's text can be given, if a patch was asked for.
  std::optional<PreflightPatch> patch;
};

PreflightOutcome outcome_of(const PreflightReply& reply);

PreflightReply answer(const PreflightQuestion& question);

template <>
inline constexpr std::array<Spelling<PreflightOutcome>, 6> spellings<PreflightOutcome>{{
    {PreflightOutcome::starts, "starts"},
    {PreflightOutcome::refused, "refused"},
    {PreflightOutcome::not_modelled, "not_modelled"},
    {PreflightOutcome::does_not_fit, "does_not_fit"},
    {PreflightOutcome::without_model, "without_model"},
    {PreflightOutcome::unread, "unread"},
}};

}  // namespace headroom
