#include "cli/choice_flags.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/inquiry.hpp"
#include "cli/launched_space.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/trials_file.hpp"
#include "io/text.hpp"
#include "report/strategy_flags.hpp"

namespace headroom::cli {
namespace {

// Returns the rule that a run breaks which is not of the question; empty: none.
std::string other_question(const Request& run, const Request& base, const Space& space) {
  if (run.model.layers != base.model.layers || run.model.hidden != base.model.hidden)
    return fmt::format("is of a model of {} layers and hidden {}, not of {}", run.model.layers,
                       run.model.hidden, base.model.name);
  if (run.workload.sequence != base.workload.sequence)
    return fmt::format("has sequences of {} tokens, not of {}", run.workload.sequence,
                       base.workload.sequence);
  if (run.workload.global_batch != base.workload.global_batch)
    return fmt::format("has a global batch of {}, not of {}", run.workload.global_batch,
                       base.workload.global_batch);
  if (run.strategy.precision != base.strategy.precision)
    return fmt::format("has linears in {}, not in {}", name_of(run.strategy.precision),
                       name_of(base.strategy.precision));
  if (devices(run.strategy) != space.devices)
    return fmt::format("ran on {} GPUs, not on {}", devices(run.strategy), space.devices);
  return {};
}

std::vector<TrialResult> runs_of(const std::string& text, const std::string& file, const SystemFlags& system,
                                 const Request& base, const Space& space) {
  const std::vector<MeasuredRun> runs = parse_runs(text, file);
  std::vector<Problem> problems = mistakes_of(runs, file);
  if (!problems.empty()) throw InputError(std::move(problems));
  for (const MeasuredRun& run : runs) {
    if (!run.device.empty() && !same_device(run.device, base.system.device))
      problems.push_back({file + ": " + run.name, "ran on " + run.device + ", not on " + base.system.device});
    if (run.stack && *run.stack != base.software.name)
      problems.push_back({file + ": " + run.name, "ran on " + *run.stack + ", not on " + base.software.name});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  const RunCases cases = cases_of(runs, system.system, base.software.name);
  for (const SkippedRun& run : cases.skipped) problems.push_back({file + ": " + run.name, text_of(run)});
  std::vector<TrialResult> results;
  for (const MeasuredCase& run : cases.measurements.cases) {
    const std::string name = file + ": " + run.name;
    if (const std::string rule = other_question(run.request, base, space); !rule.empty()) {
      problems.push_back({name, rule});
      continue;
    }
    for (const Figure& figure : run.figures) {
      if (figure.measure == Measure::iteration_seconds)
        results.push_back(
            {.name = name, .strategy = run.request.strategy, .iteration = Seconds(figure.value)});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return results;
}

}  // namespace

void add_exact_flag(Command command, bool& exact) {
  command.in(topic::answer)
      .flag("--exact", exact,
            "Rank by predicted time alone, even where plans are equal within the errors of predictions");
}

void add_choice_flags(Command command, ChoiceFlags& flags) {
  add_exact_flag(command, flags.exact);
  command = command.in(topic::answer);
  command.option("--trial", flags.trials, "N",
                 "Name up to N plans whose measured times would tell best which plan is the fastest. "
                 "--launch-dir writes a launch of each, and trials.json for their times");
  command.option(
      "--measured", flags.measured, "FILE",
      "Measured times of some strategies (trials.json or a runs file): rank again by what they tell");
}

ChoiceQuestion read_choice_flags(const ChoiceFlags& flags, const PlanQuestion& question,
                                 std::vector<Problem>& problems) {
  ChoiceQuestion choice{.by = flags.exact ? RankedBy::time : RankedBy::preference, .measured = {}};
  std::int64_t trials = 0;
  read_count("--trial", flags.trials, trials, problems);
  constexpr auto most_trials = static_cast<std::int64_t>(compared_plans);
  if (trials > most_trials)
    problems.push_back(
        {"--trial", fmt::format("must be at most {}, the plans that are compared", most_trials)});
  choice.trials = static_cast<std::size_t>(trials);
  const bool inverse = question.deadline || question.find;
  const bool several =
      question.offers.size() > 1 || question.device_counts.size() > 1 || question.global_batches.size() > 1;
  if (!inverse && !several) return choice;
  const char* const rule = several ? "needs one system, one number of GPUs and one batch"
                                   : "does not go with --find or --deadline, which change the request";
  if (flags.trials) problems.push_back({"--trial", rule});
  if (!flags.measured.empty()) problems.push_back({"--measured", rule});
  return choice;
}

std::vector<TrialResult> read_measured(const std::string& file, const AllFlags& flags, const Request& base,
                                       const Space& space, std::optional<LaunchTarget> target) {
  const std::string text = read_file(file);
  if (looks_like_runs(text)) return runs_of(text, file, flags.system, base, space);
  std::vector<TrialResult> results;
  std::vector<Problem> problems;
  std::size_t waiting = 0;
  const std::vector<TrialRow> rows = parse_trials(text, file);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TrialRow& row = rows[i];
    if (!row.iteration_seconds && !row.out_of_memory) {
      ++waiting;
      continue;
    }
    const std::string name = fmt::format("{}: /trials/{}/flags", file, i);
    collect(problems, [&] {
      AskedStrategy asked = read_inquiry(name, row.flags, flags, base, space);
      for (Problem& problem : asked.problems) problem.where = name + " " + problem.where;
      const bool other_stack = asked.software && (target ? searched_by(*asked.software, *target)
                                                         : *asked.software) != base.software;
      if (other_stack) asked.problems.push_back({name, "is of another training stack than the plan"});
      if (!asked.problems.empty()) throw InputError(std::move(asked.problems));
      TrialResult result{.name = name, .strategy = asked.strategy, .iteration = {}};
      if (row.iteration_seconds) result.iteration = Seconds(*row.iteration_seconds);
      results.push_back(std::move(result));
    });
  }
  for (const TrialResult& run : results) {
    const bool both =
        !run.iteration && std::any_of(results.begin(), results.end(), [&](const TrialResult& other) {
          return other.iteration && other.strategy == run.strategy;
        });
    if (both)
      problems.push_back({run.name, "ran out of memory, where another row has a time of the same strategy"});
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  if (waiting > 0)
    say(fmt::format("note: {}: {} of {} rows have no iteration_seconds yet", file, waiting, rows.size()));
  return results;
}

void add_trials(const LaunchOutput& options, PlanReply& reply, PlanChoice& choice) {
  std::optional<Launch>& best = reply.accounts.front().launch;
  std::vector<TrialRow> rows;
  for (std::size_t i = 0; i < choice.trials.size(); ++i) {
    ProposedTrial& trial = choice.trials[i];
    if (!is_asked(options)) trial.launch.reset();
    if (options.folder.empty() || !best || !trial.launch) continue;
    for (const LaunchFile& file : trial.launch->files)
      best->files.push_back({.name = fmt::format("trial-{}/{}", i + 1, file.name), .text = file.text});
    rows.push_back({.flags = strategy_flags(trial.candidate.strategy, reply.base.software, reply.base.model),
                    .iteration_seconds = {}});
  }
  if (!rows.empty()) best->files.push_back({.name = "trials.json", .text = trials_text(rows)});
}

}  // namespace headroom::cli
