#include "cli/command.hpp"
#include "cli/output.hpp"
#include "headroom/core/error.hpp"
#include "headroom/report/oom.hpp"

namespace headroom::cli {
namespace {

struct MemoryFlags {
  std::string file;
  OutputFlags output;
};

ExitCode memory(const MemoryFlags& flags) {
  const Style style = style_of(flags.output);
  const std::optional<OomMessage> message = read_oom_log(flags.file);
  if (!message) {
    throw InputError(
        flags.file,
        "must hold a message of memory that ran out, such as \"CUDA out of memory. Tried to allocate "
        "2.00 GiB\"");
  }
  write(flags.output, render(diagnosed(*message), style));
  return ExitCode::done;
}

}  // namespace

void add_memory(Command program, ExitCode& exit_code) {
  Command command =
      program.add_command("memory", "Tells from a log why a run went out of memory, and what mends it");
  const auto flags = std::make_shared<MemoryFlags>();
  command.option("log", flags->file, "LOG", "Log of a run, or the message alone; /dev/stdin for a pipe")
      .required();
  add_output_flags(command, flags->output);
  command.examples({"headroom memory slurm-1234.out", "headroom memory rank3.log --format json"});
  command.footer("Exit code: 0 a message was found, 2 bad input.");
  command.on_run([flags, &exit_code] { exit_code = memory(*flags); });
}

}  // namespace headroom::cli
