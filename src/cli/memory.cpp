#include "cli/command.hpp"
#include "cli/flags.hpp"
#include "cli/launch_file.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/core/error.hpp"
#include "headroom/report/oom.hpp"
#include "headroom/report/snapshot.hpp"

namespace headroom::cli {
namespace {

struct MemoryFlags {
  std::string file;
  FlagText script;
  FlagText rank;
  RequestFlags request;  // of the run, as are the flags below
  SystemFlags system;
  OutputFlags output;
};

ExitCode explain_log(const MemoryFlags& flags, const Style& style) {
  if (!flags.request.model.empty())
    throw InputError(flags.file,
                     "is not a memory snapshot: drop MODEL or --script, which apply to snapshots only");
  const std::optional<OomMessage> message = read_oom_log(flags.file);
  if (!message) {
    throw InputError(
        flags.file,
        "has no out-of-memory message, such as \"CUDA out of memory. Tried to allocate 2.00 GiB\", and is "
        "not a memory snapshot");
  }
  write(flags.output, render(diagnosed(*message), style));
  return ExitCode::done;
}

// Refuses flags of a run where none is named.
void refuse_without_run(const Command& command) {
  for (const std::string& word :
       command.arguments({"--format", "--columns", "--color", "--output", "--verbose"})) {
    if (word.starts_with("--")) {
      throw InputError(word.substr(0, word.find('=')),
                       "needs the run that wrote the snapshot: add --script FILE, or MODEL and its flags");
    }
  }
}

// The reply, whose errors name flags.
SnapshotReply answered(const SnapshotQuestion& question, const MemoryFlags& flags) {
  try {
    return answer(question);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (problem.where == "snapshot") problem.where = "prediction for " + flags.request.model;
      if (problem.where == "pipeline_rank") problem.where = "--pipeline-rank";
    }
    throw InputError(std::move(problems));
  }
}

ExitCode explain_snapshot(const MemoryFlags& flags, const Style& style) {
  SnapshotQuestion question;
  question.file = flags.file;
  std::vector<Problem> problems;
  if (!flags.request.model.empty()) question.request = read_request_on(flags.request, flags.system, problems);
  if (flags.rank) read_count("--pipeline-rank", flags.rank, question.rank.emplace(), problems, 0);
  if (!problems.empty()) throw InputError(problems);
  question.snapshot = read_snapshot(flags.file);
  write(flags.output, render(answered(question, flags), style));
  return ExitCode::done;
}

ExitCode memory(const MemoryFlags& flags) {
  const Style style = style_of(flags.output);
  return is_pickle(flags.file) ? explain_snapshot(flags, style) : explain_log(flags, style);
}

}  // namespace

void add_memory(Command program, ExitCode& exit_code) {
  Command command = program.add_command("memory", "Explains an out-of-memory log or a memory snapshot");
  const auto flags = std::make_shared<MemoryFlags>();
  command
      .option("log", flags->file, "FILE",
              "Log of a run or its message (/dev/stdin for a pipe), or a memory snapshot of PyTorch")
      .required();
  add_request_flags(command, flags->request);
  command.find("model").required(false).describe(
      "MODEL", "With a snapshot: the run's model. Blocks are matched to its predicted tensors");
  command.in(topic::launch_file)
      .option("--script", flags->script, "FILE",
              "With a snapshot: the run's launch script or configuration, instead of MODEL");
  command.in(topic::parallelism)
      .option("--pipeline-rank", flags->rank, "N",
              "PP rank of the snapshot (default: the rank that reserves the most)");
  add_system_flags(command, flags->system);
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples({"headroom memory slurm-1234.out", "headroom memory rank3.log --format json",
                    "headroom memory snapshot.pickle --script train.sh --system dgx-h100-80g"});
  command.footer("Exit code: 0 a message was found or a snapshot read, 2 bad input.");
  command.on_run([command, flags, &exit_code] {
    if (flags->script && !flags->request.model.empty())
      throw InputError("--script", "cannot be combined with MODEL: give one of the two");
    if (flags->script) flags->request.model = *flags->script;
    flags->request.verbose = flags->output.verbose;
    if (flags->request.model.empty()) refuse_without_run(command);
    if (!flags->request.model.empty()) take_launch_file(flags->request, flags->system);
    with_places(flags->request, [&] { exit_code = memory(*flags); });
  });
}

}  // namespace headroom::cli
