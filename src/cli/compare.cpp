#include "headroom/report/compare.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"

namespace headroom::cli {
namespace {

struct CompareFlags {
  RequestFlags request;
  SystemFlags system;
  std::string change;
  OutputFlags output;
};

// The flags of the first strategy, and of what it runs on, with those of `change` put over them.
struct ChangedFlags {
  RequestFlags request;
  SystemFlags system;
};
ChangedFlags changed(const CompareFlags& flags) {
  ChangedFlags to{flags.request, flags.system};
  ArgumentReader reader;
  add_request_flags(reader.command(), to.request);
  add_system_flags(reader.command(), to.system);
  reader.read("--to", flags.request.model + " " + flags.change);
  return to;
}

Request request_of(const RequestFlags& flags, const SystemFlags& system) {
  std::vector<Problem> problems;
  Request request = read_request(flags, problems);
  read_system_flags(system, request, problems);
  use_stack_sharding(flags, request);
  if (!problems.empty()) throw InputError(problems);
  return request;
}

ExitCode compare(const CompareFlags& flags) {
  const Style style = style_of(flags.output);
  const auto [request, system] = changed(flags);
  const CompareReply reply = answer(CompareQuestion{.before = request_of(flags.request, flags.system),
                                                    .after = request_of(request, system)});
  write(flags.output, render(reply, flags.change, style));
  return std::holds_alternative<Plan>(reply.after) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_compare(Command program, ExitCode& exit_code) {
  Command command = program.add_command("compare", "Two strategies for one model, term by term");
  const auto flags = std::make_shared<CompareFlags>();
  add_request_flags(command, flags->request);
  add_system_flags(command, flags->system);
  command
      .option("--to", flags->change, "'FLAGS'",
              "Flags of the other, where it differs: of its strategy, its system or its training stack")
      .required();
  add_output_flags(command, flags->output);
  command.footer(
      "Example:\n"
      "  headroom compare gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --recompute full --to '--sp --recompute "
      "selective'\n"
      "\nExit code: 0 the other strategy fits, 2 bad input, 3 it does not fit.");
  command.on_run([flags, &exit_code] { exit_code = compare(*flags); });
}

}  // namespace headroom::cli
