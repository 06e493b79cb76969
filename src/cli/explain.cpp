#include "headroom/report/explain.hpp"

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/parallel/stack_legality.hpp"

namespace headroom::cli {
namespace {

struct ExplainFlags {
  RequestFlags request;
  SystemFlags stack;
  OutputFlags output;
};

void run(const ExplainFlags& flags) {
  const Style style = style_of(flags.output);
  std::vector<Problem> problems;
  Request request = read_request(flags.request, problems);
  if (!flags.stack.software.empty() || !flags.stack.software_overrides.empty()) {
    read_software_flags(flags.stack, request, problems);
    use_stack_defaults(flags.request, request);
    for (const Problem& problem : stack_illegalities(request.software, request.strategy)) {
      problems.push_back(by_flag(problem));
    }
  }
  if (request.strategy.recompute.window) {
    problems.push_back(
        {"--recompute-window", "needs a GPU's memory to size the window: use headroom estimate"});
  }
  if (!problems.empty()) throw InputError(problems);
  const ExplainReply reply = answer(ExplainQuestion{.model = request.model,
                                                    .strategy = request.strategy,
                                                    .workload = request.workload,
                                                    .detail = request.detail,
                                                    .software = request.software});
  write(flags.output, render(reply, style));
}

}  // namespace

void add_explain(Command program, ExitCode& exit_code) {
  Command command = program.add_command("explain", "What each op stores and why, in symbols and in bytes");
  const auto flags = std::make_shared<ExplainFlags>();
  add_request_flags(command, flags->request);
  add_software_flags(command, flags->stack);
  add_output_flags(command, flags->output);
  command.footer(
      "Examples:\n"
      "  headroom explain gpt3-175b                                   K22 eq. 1\n"
      "  headroom explain gpt3-175b -t 8 --sp --recompute selective   K22 eq. 6\n"
      "  headroom explain llama-3-8b -t 4 --detail exact --format csv\n"
      "  headroom explain llama-3-8b -d 8 --zero 3 --software torchtitan-2025");
  command.on_run([flags, &exit_code] {
    run(*flags);
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
