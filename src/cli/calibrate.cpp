#include "headroom/answer/calibrate.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/run_files.hpp"
#include "headroom/interop/profile.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/report/calibration.hpp"
#include "headroom/report/run_calibration.hpp"

namespace headroom::cli {
namespace {

struct CalibrateFlags {
  std::vector<std::string> samples;
  std::vector<std::string> profiles;
  std::vector<std::string> runs;
  std::vector<std::string> fit;
  std::optional<std::string> software;
  std::string base = "dgx-a100-80g";
  OutputFlags report;
  std::string output;  // the system
};

// The base, and what `read(base, problems)` reads besides, with the problems that it meets. Throws InputError with all
// problems together.
template <class Read>
System read_inputs(const std::string& base_name, Read read) {
  std::vector<Problem> problems;
  System base;
  collect(problems, [&] { base = read_system(base_name); });
  note_reading("system", base_name);
  read(base, problems);
  if (problems.empty() && !base.performance) {
    problems.push_back({base_name, "has no performance figures, which a fit starts from"});
  }
  if (!problems.empty()) throw InputError(problems);
  return base;
}

void write_calibrated(System system, const std::string& file) {
  if (file.empty()) return;
  system.name = std::filesystem::path(file).stem().string();
  write({.file = file}, write_system(system));
}

ExitCode fit_to_samples(const CalibrateFlags& flags) {
  const Style style = style_of(flags.report);
  std::optional<Progress> progress(std::in_place, "reading samples");
  CalibrateQuestion question;
  question.base = read_inputs(flags.base, [&](const System& base, std::vector<Problem>& problems) {
    for (const std::string& file : flags.samples)
      collect(problems, [&] { question.sets.push_back(read_samples(file)); });
    for (const std::string& file : flags.profiles)
      collect(problems, [&] { question.profiles.push_back(read_profile(file, base.devices_per_node)); });
  });
  const CalibrateReply reply = answer(question, progress->watch());
  progress.reset();
  write_calibrated(reply.calibration.system, flags.output);
  write({}, render(reply, style));
  return ExitCode::done;
}

// Names of runs, which may hold commas themselves: one that a run has is taken as it is, another is split.
std::vector<std::string> names_of(const std::vector<std::string>& given,
                                  const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> names;
  for (const std::string& text : given) {
    const bool whole =
        std::any_of(runs.begin(), runs.end(), [&](const MeasuredRun& run) { return run.name == text; });
    const std::vector<std::string> parts = whole ? std::vector{text} : split_list(text);
    names.insert(names.end(), parts.begin(), parts.end());
  }
  return names;
}

ExitCode fit_to_runs(const CalibrateFlags& flags) {
  const Style style = style_of(flags.report);
  std::optional<Progress> progress(std::in_place, "reading runs");
  std::vector<MeasuredRun> runs;
  const System base = read_inputs(flags.base, [&](const System&, std::vector<Problem>& problems) {
    runs = read_run_files(flags.runs, problems);
  });
  const CalibrateToRunsReply reply = answer(
      CalibrateToRunsQuestion{
          .runs = choose_runs(runs, names_of(flags.fit, runs), flags.base, flags.software),
          .base = base,
          .files = fmt::format("{}", fmt::join(flags.runs, " and "))},
      progress->watch());
  progress.reset();
  write_calibrated(reply.calibration.system, flags.output);
  write({}, render(reply, style));
  note_skipped(reply.skipped, style);
  return ExitCode::done;
}

ExitCode calibrate(const CalibrateFlags& flags) {
  std::vector<Problem> problems;
  const bool samples = !flags.samples.empty() || !flags.profiles.empty();
  if (!samples && flags.runs.empty()) {
    problems.push_back({"calibrate", "needs samples, --profile or --from-runs"});
  }
  if (samples && !flags.runs.empty()) {
    problems.push_back({"--from-runs",
                        "cannot be combined with samples and profiles: fit those first, and give the system "
                        "that this writes as the --base of the runs"});
  }
  if (flags.runs.empty() && !flags.fit.empty()) problems.push_back({"--fit", "needs --from-runs"});
  if (flags.runs.empty() && flags.software) problems.push_back({"--software", "needs --from-runs"});
  if (!problems.empty()) throw InputError(problems);
  return flags.runs.empty() ? fit_to_samples(flags) : fit_to_runs(flags);
}

}  // namespace

void add_calibrate(Command program, ExitCode& exit_code) {
  Command command = program.add_command("calibrate", "Fits a system's rates to measured samples or runs");
  const auto flags = std::make_shared<CalibrateFlags>();
  command.option("samples", flags->samples, "SAMPLES",
                 "JSON of headroom-measure, CSV, or output of nccl-tests");
  command.option(
      "--profile", flags->profiles, "FILE",
      "Besides or instead of samples: a trace of PyTorch's profiler (Kineto), which may be gzipped, or an "
      "SQLite export of nsys, of a training step; may be repeated");
  command.option("--from-runs,--runs", flags->runs, "FILE",
                 "Instead of samples: runs whose iteration times tell the sustained efficiencies; may be "
                 "repeated");
  command.option("--fit", flags->fit, "NAME,...",
                 "Fit to the runs of these names, hold out the others (default: those marked \"fit\": true, "
                 "or all)");
  command.option("--software", flags->software, "SOFTWARE", "Training stack of all runs");
  command.option("--base,--system", flags->base, "SYSTEM",
                 "Measured system (name or file); its other figures are kept");
  add_style_flags(command, flags->report);
  command.in(topic::output).output("-o,--output", flags->output, "Write the calibrated system to FILE");
  command.examples(
      {"headroom calibrate products.csv --base dgx-a100-80g -o my-cluster.json",
       "headroom calibrate --profile trace.json.gz --base dgx-a100-80g -o my-cluster.json",
       "headroom calibrate --from-runs my-runs.json --base my-cluster.json -o my-cluster-tuned.json"});
  command.footer(
      "Errors are of the fit, and of what was held out: each third of the shapes is predicted by rates "
      "fitted "
      "to the other two, each run by efficiencies fitted to the others. docs/calibration.md describes the "
      "files.\n"
      "Exit code: 0 done, 2 bad input.");
  command.on_run([flags, &exit_code] { exit_code = calibrate(*flags); });
}

}  // namespace headroom::cli
