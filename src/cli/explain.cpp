#include "headroom/report/explain.hpp"

#include "cli/command.hpp"
#include "cli/launch_file.hpp"
#include "cli/output.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/parallel/edits.hpp"
#include "headroom/parallel/legality.hpp"

namespace headroom::cli {
namespace {

struct ExplainFlags {
  RequestFlags request;
  SystemFlags runs_on{.system = ""};  // none unless it is named
  OutputFlags output;
};

void run(const ExplainFlags& flags) {
  const Style style = style_of(flags.output);
  std::vector<Problem> problems;
  Request request = read_request(flags.request, problems);
  const SystemFlags& runs_on = flags.runs_on;
  const bool on_system = !runs_on.system.empty();
  if (on_system) {
    read_system_flags(runs_on, request, problems);
  } else if (!runs_on.overrides.empty()) {
    problems.push_back({"--set-system", "needs --system, which it overrides"});
  } else if (!runs_on.software.empty() || !runs_on.software_overrides.empty()) {
    read_software_flags(runs_on, request, problems);
  }
  if (on_system || !runs_on.software.empty() || !runs_on.software_overrides.empty()) {
    use_stack_defaults(flags.request, request);
    for (const Problem& problem : stack_illegalities(request.software, request.strategy)) {
      problems.push_back(by_flag(problem));
    }
  }
  if (on_system && problems.empty()) {
    for (const Problem& problem : system_illegalities(request.system, request.strategy, Whose::device))
      problems.push_back(by_flag(problem));
  }
  if (request.strategy.recompute.window) {
    problems.push_back(
        {"--recompute-window", "needs a GPU's memory to size the window: use headroom estimate"});
  }
  if (!problems.empty()) throw InputError(problems);
  const OnHeap<Performance>& performance = request.system.performance;
  const std::optional<Device> device = performance ? std::optional(performance->device) : std::nullopt;
  const ExplainReply reply = answer(ExplainQuestion{.model = request.model,
                                                    .strategy = request.strategy,
                                                    .workload = request.workload,
                                                    .detail = request.detail,
                                                    .software = request.software,
                                                    .device = device});
  write(flags.output, render(reply, style));
}

}  // namespace

void add_explain(Command program, ExitCode& exit_code) {
  Command command =
      program.add_command("explain", "Shows what each op stores and why, in symbols and in bytes");
  const auto flags = std::make_shared<ExplainFlags>();
  add_request_flags(command, flags->request);
  add_hardware_flags(command, flags->runs_on);
  add_software_flags(command, flags->runs_on);
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples({"headroom explain gpt3-175b   # K22 eq. 1",
                    "headroom explain gpt3-175b -t 8 --sp --recompute selective   # K22 eq. 6",
                    "headroom explain llama-3-8b --precision fp8 --system dgx-b200-180g",
                    "headroom explain llama-3-8b -t 4 --detail exact --format csv",
                    "headroom explain llama-3-8b -d 8 --zero 3 --software torchtitan-2025"});
  command.on_run([flags, &exit_code] {
    flags->request.verbose = flags->output.verbose;
    take_launch_file(flags->request, flags->runs_on);
    with_places(flags->request, [&] { run(*flags); });
    exit_code = ExitCode::done;
  });
}

}  // namespace headroom::cli
