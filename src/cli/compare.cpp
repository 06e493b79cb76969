#include "headroom/report/compare.hpp"

#include "cli/changed_flags.hpp"
#include "cli/command.hpp"
#include "cli/launch_file.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/recipe_flags.hpp"

namespace headroom::cli {
namespace {

struct CompareFlags {
  AllFlags first;
  std::string change;
  PageOutput page;
  OutputFlags output;
};

Request request_of(AllFlags flags, bool has_system) {
  use_recipe(flags, "headroom compare", has_system);
  std::vector<Problem> problems;
  Request request = read_request_on(flags.request, flags.system, problems);
  if (!problems.empty()) throw InputError(problems);
  return request;
}

ExitCode compare(const Command& command, const CompareFlags& flags) {
  const Style style = style_of(flags.output);
  const bool has_system = command.is_given("--system");
  const Request before = request_of(flags.first, has_system);
  AllFlags second = changed_flags(flags.first, "--to", flags.change, add_system_flags);
  const bool changes_system = has_system || second.system.system != flags.first.system.system;
  // The default follows the layout: with it, iterations of different batches would be compared.
  FlagText& batch = second.request.text("global_batch");
  if (!batch && !second.request.recipe) batch = std::to_string(before.workload.global_batch);
  const CompareReply reply =
      answer(CompareQuestion{.before = before, .after = request_of(second, changes_system)});
  write_page(flags.page, [&](const Style& json) { return render(reply, flags.change, json); });
  write(flags.output, render(reply, flags.change, style));
  return std::holds_alternative<Plan>(reply.after) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_compare(Command program, ExitCode& exit_code) {
  Command command = program.add_command("compare", "Compares two strategies for one model, term by term");
  const auto flags = std::make_shared<CompareFlags>();
  add_request_flags(command, flags->first.request);
  add_system_flags(command, flags->first.system);
  add_recipe_flag(command, flags->first.request);
  command.in(topic::answer)
      .option("--to", flags->change, "'FLAGS'",
              "Flags of the other side where it differs: strategy, system or training stack")
      .required();
  add_page_output(command, flags->page);
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples(
      {"headroom compare gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --recompute full --to '--sp --recompute "
       "selective'",
       "headroom compare llama-3-70b -t 8 -p 4 --devices 64 --sp --to '--system dgx-b200-180g'"});
  command.footer("Exit code: 0 the other strategy fits, 2 bad input, 3 it does not fit.");
  command.on_run([flags, command, &exit_code] {
    flags->first.request.verbose = flags->output.verbose;
    take_launch_file(flags->first.request, flags->first.system);
    with_places(flags->first.request, [&] { exit_code = compare(command, *flags); });
  });
}

}  // namespace headroom::cli
