#include "headroom/report/frontier.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/launch_file.hpp"
#include "cli/notes.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/progress.hpp"
#include "cli/request_flags.hpp"
#include "cli/stopping.hpp"
#include "cli/system_flags.hpp"
#include "headroom/io/quantity.hpp"
#include "headroom/io/remarks.hpp"

namespace headroom::cli {
namespace {

struct FrontierFlags {
  RequestFlags request;  // without recomputation, which is what is asked for
  SystemFlags system;
  FlagText budgets;
  bool window = false;
  bool all = false;
  FlagText time_limit;
  PageOutput page;
  OutputFlags output;
};

std::vector<Bytes> read_budgets(const FlagText& text, std::vector<Problem>& problems) {
  std::vector<Bytes> budgets;
  for (const std::string& part : split_list(text)) {
    const Parsed<Bytes> parsed = parse_device_memory(part);
    tell_once(remarks_on_memory(part));
    if (const auto* rule = std::get_if<std::string>(&parsed)) {
      problems.push_back({"--budget", *rule});
    } else {
      budgets.push_back(std::get<Bytes>(parsed));
    }
  }
  return budgets;
}

ExitCode frontier(const FrontierFlags& flags) {
  const Style style = style_of(flags.output);
  std::vector<Problem> problems;
  Request request = read_request_on(flags.request, flags.system, problems);
  std::vector<Bytes> budgets = read_budgets(flags.budgets, problems);
  const std::optional<Seconds> limit = read_time_limit(flags.time_limit, problems);
  if (!problems.empty()) throw InputError(problems);
  Stopping stopping(limit);
  std::optional<Progress> progress(std::in_place, "pricing sets of ops");
  const FrontierReply reply = answer(
      FrontierQuestion{.request = std::move(request), .budgets = std::move(budgets), .window = flags.window},
      {.stops = [&] { return stopping(); },
       .tells = [&](std::string_view step, std::int64_t done,
                    std::int64_t of) { progress->update(step, done, of); }});
  const std::optional<Stop> stop = stopping.end();
  progress.reset();
  write_page(flags.page,
             [&](const Style& json) { return render(reply, json, flags.all, stop.value_or(Stop{})); });
  write(flags.output, render(reply, style, flags.all, stop.value_or(Stop{})));
  if (reply.stopped && style.format == Format::csv) say(stopped_text(stop.value_or(Stop{})));
  return fits(reply) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_frontier(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "frontier", "Finds what to recompute of a layer at each memory budget: memory against time");
  const auto flags = std::make_shared<FrontierFlags>();
  add_model_flags(command, flags->request);
  add_layout_flags(command, flags->request);
  add_system_flags(command, flags->system);
  const Command answer = command.in(topic::answer);
  answer.option("--budget", flags->budgets, "BYTES,...",
                "Memory per GPU: '60 GiB' or a list (default: the system's)");
  answer.flag("--recompute-window", flags->window,
              "Also exempt as many microbatches from recomputation as memory allows");
  answer.flag("--all", flags->all,
              "Show every point of the frontier, not only those where memory costs the least time");
  add_time_limit_flag(command, flags->time_limit);
  add_page_output(command, flags->page);
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples(
      {"headroom frontier gpt3-175b -t 8 -p 8 -m 3 --global-batch 64 --sp",
       "headroom frontier gpt-22b -t 8 -b 4 --global-batch 4 --sp --budget '40 GiB,60 GiB'",
       "headroom frontier llama-3-70b -t 8 -p 4 --devices 64 --global-batch 256 --sp --format csv -o "
       "front.csv"});
  command.footer(
      "docs/frontier.md says which sets the frontier is optimal among.\n"
      "Exit code: 0 done, 2 bad input, 3 nothing fits a budget.");
  command.on_run([flags, &exit_code] {
    flags->request.verbose = flags->output.verbose;
    take_launch_file(flags->request, flags->system);
    with_places(flags->request, [&] { exit_code = frontier(*flags); });
  });
}

}  // namespace headroom::cli
