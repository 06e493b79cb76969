#include "headroom/report/trace.hpp"

#include "cli/command.hpp"
#include "cli/launch_file.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"

namespace headroom::cli {
namespace {

struct TraceFlags {
  RequestFlags request;
  SystemFlags system;
  OutputFlags output;
};

ExitCode trace(const TraceFlags& flags) {
  std::vector<Problem> problems;
  Request request = read_request_on(flags.request, flags.system, problems);
  if (!problems.empty()) throw InputError(problems);
  const TraceReply reply = answer(TraceQuestion{.request = std::move(request)});
  Output output(flags.output);
  chrome_trace(reply.trace, [&](const std::string& text) { output.write(text); });
  output.finish();
  return std::holds_alternative<Plan>(reply.evaluation) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_trace(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "trace", "Writes the pipeline schedule and memory of each rank for ui.perfetto.dev");
  const auto flags = std::make_shared<TraceFlags>();
  add_request_flags(command, flags->request);
  add_system_flags(command, flags->system);
  add_verbose_flag(command, flags->request.verbose);
  command.in(topic::output)
      .output("-o,--output", flags->output.file, "Write to FILE instead of standard output");
  command.examples(
      {"headroom trace gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --sp --recompute selective -o trace.json"});
  command.footer("Exit code: 0 it fits, 2 bad input, 3 it does not fit.");
  command.on_run([flags, &exit_code] {
    take_launch_file(flags->request, flags->system);
    with_places(flags->request, [&] { exit_code = trace(*flags); });
  });
}

}  // namespace headroom::cli
