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

// The flags of the first strategy with those of `change` put over them.
RequestFlags changed(RequestFlags flags, const std::string& change) {
  ArgumentReader reader;
  const std::string model = flags.model;
  add_request_flags(reader.command(), flags);
  reader.read("--to", model + " " + change);
  return flags;
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
  const CompareReply reply =
      answer(CompareQuestion{.before = request_of(flags.request, flags.system),
                             .after = request_of(changed(flags.request, flags.change), flags.system)});
  write(flags.output, render(reply, flags.change, style));
  return std::holds_alternative<Plan>(reply.after) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_compare(Command program, ExitCode& exit_code) {
  Command command = program.add_command("compare", "Two strategies for one model, term by term");
  const auto flags = std::make_shared<CompareFlags>();
  add_request_flags(command, flags->request);
  add_system_flags(command, flags->system);
  command.option("--to", flags->change, "'FLAGS'", "Flags of the other strategy, where it differs")
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
