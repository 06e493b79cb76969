#include "headroom/io/check.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "cli/capacity_flags.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/launch_file.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/system_flags.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/report/preflight.hpp"
#include "io/text.hpp"

namespace headroom {
namespace cli {
enum class CheckFormat : std::uint8_t { table, json, github };
}

template <>
inline constexpr std::array<Spelling<cli::CheckFormat>, 3> spellings<cli::CheckFormat>{{
    {cli::CheckFormat::table, "table"},
    {cli::CheckFormat::json, "json"},
    {cli::CheckFormat::github, "github"},
}};

namespace cli {
namespace {

struct CheckFlags {
  std::vector<std::string> files;
  RequestFlags launch;  // of a launch file, as are the flags below
  SystemFlags system;
  CapacityFlags capacity;
  bool patch = false;
  std::string format = "table";
};

// Problems whose places in the file are told. The number of GPUs is left to the preflight, if it is all.
std::vector<Problem> placed(const RequestFlags& flags, std::vector<Problem> problems) {
  for (Problem& problem : problems) {
    problem = as_typed(problem);
    if (const auto place = flags.places.find(problem.where); place != flags.places.end())
      problem.where = place->second;
  }
  return problems;
}

// Returns the problems without the file's name in front; the preflight adds it.
std::vector<Problem> placed_in(const std::string& file, const RequestFlags& flags,
                               std::vector<Problem> problems) {
  problems = placed(flags, std::move(problems));
  const std::string start = printable(file) + ": ";
  for (Problem& problem : problems) {
    if (problem.where.starts_with(start)) problem.where.erase(0, start.size());
  }
  return problems;
}

ExitCode exit_code_of(PreflightOutcome outcome) {
  switch (outcome) {
    case PreflightOutcome::starts: return ExitCode::done;
    case PreflightOutcome::refused:
    case PreflightOutcome::without_model:
    case PreflightOutcome::unread:
    case PreflightOutcome::not_modelled: return ExitCode::bad_input;
    case PreflightOutcome::does_not_fit: return ExitCode::infeasible;
  }
  EXPECTS(!"unknown outcome");
  return ExitCode::internal;
}

ExitCode check_read(const std::string& file, const CheckFlags& flags, CheckFormat format) {
  const RequestFlags& asked = flags.launch;
  std::vector<Problem> problems;
  Request request = read_request(asked, problems);
  const auto only_devices = [](const Problem& problem) { return problem.where == "--devices"; };
  if (!std::all_of(problems.begin(), problems.end(), only_devices))
    throw InputError(placed(asked, std::move(problems)));
  std::vector<Problem> others;
  read_system_flags(flags.system, request, others);
  use_stack_defaults(asked, request);
  const Training training = read_training(flags.capacity, others);
  if (!others.empty()) throw InputError(placed(asked, std::move(others)));

  const LaunchOptions options = launch_options(asked, asked.overrides);
  std::int64_t job = devices(request.strategy);
  if (asked.devices) headroom::read_count(*asked.devices, job);  // read_request() has judged it
  const PreflightReply reply =
      answer(PreflightQuestion{.file = file,
                               .run = read_launched_run(file, options),
                               .request = std::move(request),
                               .devices = job,
                               .problems = placed_in(file, asked, std::move(problems)),
                               .training = training,
                               .patched = flags.patch ? std::optional(options) : std::nullopt});
  if (flags.patch) tell_once({file + ": " + patch_note(reply)});
  switch (format) {
    case CheckFormat::table:
      print_result(flags.patch ? (reply.patch ? reply.patch->diff : "")
                               : preflight_text(reply, style_of({.verbose = asked.verbose})));
      break;
    case CheckFormat::json: print_result(preflight_json(reply)); break;
    case CheckFormat::github: print_result(preflight_annotations(reply)); break;
  }
  return exit_code_of(outcome_of(reply));
}

// Returns what was read of a file, or nothing if it cannot be read.
LaunchedRun read_or_empty(const std::string& file, const LaunchOptions& options) {
  try {
    return read_launched_run(file, options);
  } catch (const InputError&) {
    return {};
  }
}

// Splits where a problem is ("run.sh:14: --bf16", "run.sh: /optimizer", "run.sh", "base.yaml:5: heads") into a
// place in a file and a field.
std::pair<FilePlace, std::string> split_place(const std::string& file, std::string_view where) {
  FilePlace at{.file = file};
  const std::size_t colon = where.find(':');
  const std::string_view start = where.substr(0, colon);
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : where.substr(colon + 1);
  const std::string_view line = rest.substr(0, rest.find(':'));
  const bool has_line = !line.empty() && headroom::read_count(line, at.line).empty();
  if (start != file && !has_line) return {at, std::string(where)};
  at.file = start;
  if (has_line) rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return {at, std::string(rest)};
}

// In formats for programs, prints what could be read of a file that failed, with its errors. Tables print
// only the errors.
void tell_unread(const std::string& file, const CheckFlags& flags, CheckFormat format,
                 const InputError& error) {
  if (format == CheckFormat::table) return;
  LaunchedRun run = read_or_empty(file, launch_options(flags.launch, flags.launch.overrides));
  PreflightReply reply{.file = file, .run = std::move(run)};
  reply.unread = reply.run.framework.empty() || reply.run.model;
  for (const Problem& problem : error.problems()) {
    PreflightFinding& finding = reply.findings.emplace_back();
    auto [at, field] = split_place(file, problem.where);
    finding.problem = {.where = reply.unread ? std::move(field) : "model", .rule = problem.rule};
    finding.at = std::move(at);
    for (const LaunchRemark& remark : reply.run.remarks) {
      if (text_of(remark.at) != problem.where) continue;
      finding.at = remark.at;
      if (!remark.field.empty()) finding.problem.where = remark.field;
    }
  }
  print_result(format == CheckFormat::json ? preflight_json(reply) : preflight_annotations(reply));
}

// Returns the result of `read`. If it throws, calls tell_unread() and rethrows.
template <class Read>
auto reading(const std::string& file, const CheckFlags& flags, CheckFormat format, Read read) {
  try {
    return read();
  } catch (const InputError& error) {
    tell_unread(file, flags, format, error);
    throw;
  }
}

ExitCode check_launch(const std::string& file, CheckFlags flags, CheckFormat format) {
  flags.launch.model = file;
  reading(file, flags, format, [&] { take_launch_file(flags.launch, flags.system); });
  ExitCode code = ExitCode::done;
  reading(file, flags, format,
          [&] { with_places(flags.launch, [&] { code = check_read(file, flags, format); }); });
  return code;
}

ExitCode check(const CheckFlags& flags, CheckFormat format) {
  std::vector<Problem> problems;
  ExitCode worst = ExitCode::done;
  for (const std::string& file : flags.files) {
    collect(problems, [&] {
      if (is_launched_run(file)) {
        worst = std::max(worst, check_launch(file, flags, format));
        return;
      }
      const std::string_view kind = reading(file, flags, format, [&] { return check_file(file); });
      print_result(fmt::format("{}: a valid {} file\n", printable(file, std::string::npos), kind));
      if (kind == "system") note_reading(kind, file);
    });
  }
  if (!problems.empty()) throw InputError(problems);
  return worst;
}

}  // namespace

void add_check(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "check", "Checks a launch script or configuration before its job starts, or files of Headroom");
  const auto flags = std::make_shared<CheckFlags>();
  command.option("files", flags->files, "FILE", "Launch files, or files of any kind that Headroom reads")
      .required();
  add_launch_flags(command, flags->launch);
  command.in(topic::model)
      .option("--set", flags->launch.overrides, "KEY=VALUE",
              "Override a field of the model: vocabulary=128256");
  command.in(topic::parallelism)
      .option("--devices", flags->launch.devices, "N",
              "Number of GPUs of the job (default: as the file says)");
  add_batch_flags(command, flags->launch);
  add_system_flags(command, flags->system);
  add_capacity_flags(command, flags->capacity);
  const Command output = command.in(topic::output);
  output.option(
      "--format", flags->format, "FORMAT",
      "table; json: also all that was read, with lines; github: annotations of the file in GitHub Actions");
  add_verbose_flag(command, flags->launch.verbose);
  output.flag(
      "--patch", flags->patch,
      "Print only a unified diff of the file: the smallest helpful change that can be written into it. Apply "
      "it with patch -p0");
  command.examples({"headroom check train.sh --system dgx-h100-80g",
                    "headroom check train.sh --system dgx-h100-80g --devices 64 --format github",
                    "headroom check my-model.json my-cluster.json"});
  command.footer(
      "Exit code of a launch file: 0 it fits and breaks no rule that Headroom knows, 2 it cannot be read, is "
      "refused or not modelled, 3 it does not fit.");
  command.on_run([flags, &exit_code] {
    std::vector<Problem> problems;
    CheckFormat format{};
    read_choice("--format", flags->format, format, problems);
    if (!problems.empty()) throw InputError(std::move(problems));
    exit_code = check(*flags, format);
  });
}

}  // namespace cli
}  // namespace headroom
