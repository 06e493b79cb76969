#include "headroom/report/estimate.hpp"

#include <fmt/format.h>

#include "cli/capacity_flags.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/follow_up.hpp"
#include "cli/launch_file.hpp"
#include "cli/launch_output.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/recipe_flags.hpp"
#include "cli/request_flags.hpp"
#include "cli/system_flags.hpp"
#include "headroom/answer/snapshot.hpp"
#include "headroom/interop/memory_snapshot_writer.hpp"

namespace headroom::cli {
namespace {

struct EstimateFlags {
  RequestFlags request;
  SystemFlags system;
  CapacityFlags capacity;
  bool no_suggestions = false;
  bool timeline = false;
  bool peak = false;
  LaunchOutput launch;
  PageOutput page;
  std::string snapshot;
  OutputFlags output;
};

PlannedSnapshot snapshot_by_flag(const Plan& plan) {
  try {
    return planned_snapshot(plan);
  } catch (const InputError& error) {
    throw InputError("--snapshot", error.problems().front().rule);
  }
}

// Writes the memory snapshot of a plan, and says on stderr what it shows.
void write_planned_snapshot(const std::string& file, const Plan& plan) {
  if (file.empty()) return;
  const PlannedSnapshot planned = snapshot_by_flag(plan);
  Output output({.file = file});
  write_snapshot(planned.snapshot, [&](const std::string& bytes) { output.write(bytes); });
  output.finish();
  const std::int64_t others = planned.all_microbatches - planned.microbatches;
  say(fmt::format("{} shows the allocator of PP rank {}{}: open it at https://pytorch.org/memory_viz", file,
                  planned.rank,
                  others > 0 ? fmt::format(" for {} of {} microbatches (the others repeat them)",
                                           planned.microbatches, planned.all_microbatches)
                             : ""));
}

ExitCode estimate(const Command& command, EstimateFlags flags) {
  AllFlags all{flags.request, flags.system};
  use_recipe(all, "headroom estimate", command.is_given("--system"));
  flags.request = std::move(all.request);
  flags.system = std::move(all.system);
  const Style style = style_of(flags.output);
  std::vector<Problem> problems;
  Request request = read_request_on(flags.request, flags.system, problems);
  const Training training = read_training(flags.capacity, problems);
  const Software* const stack = &request.software;
  const std::optional<LaunchTarget> target = read_target(flags.launch, {&stack, 1}, style, problems);
  const WhichViews views = views_needed(flags.page, style, problems);
  refuse_files(flags.page.what_if, {flags.request.model, flags.system.system, flags.system.software},
               problems);
  if (!problems.empty()) throw InputError(problems);
  if (target) request.software = started_by(std::move(request.software), *target);

  EstimateReply reply =
      answer(EstimateQuestion{.request = std::move(request),
                              .training = training,
                              .with_alternatives = !flags.no_suggestions,
                              .with_schedule = flags.timeline,
                              .with_peak_tensors = flags.peak || views == WhichViews::all,
                              .views = views,
                              .with_launch = is_asked(flags.launch) || !flags.page.file.empty(),
                              .target = target});
  const Request& asked = account(reply.evaluation).request;
  const EstimateWords words{.estimate = estimate_command(flags.request, flags.system, asked),
                            .plan = plan_command(flags.request, flags.system, asked)};
  write_planned_snapshot(flags.snapshot, account(reply.evaluation));
  write_page(flags.page, [&](const Style& json) { return render(reply, words, json); });
  keep_asked(flags.page, flags.peak, is_asked(flags.launch), reply);
  write_launch(flags.launch, reply.launch, flags.output.file);
  if (!flags.launch.folder.empty() && reply.launch && style.format != Format::json)
    reply.launch->files.clear();
  write(flags.output, render(reply, words, style));
  return fits(reply) ? ExitCode::done : ExitCode::infeasible;
}

}  // namespace

void add_estimate(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "estimate", "Predicts memory of each pipeline rank, whether it fits, and iteration time");
  const auto flags = std::make_shared<EstimateFlags>();
  add_request_flags(command, flags->request);
  add_system_flags(command, flags->system);
  add_recipe_flag(command, flags->request);
  add_capacity_flags(command, flags->capacity);
  const Command answer = command.in(topic::answer);
  answer.flag("--timeline", flags->timeline,
              "Draw the pipeline schedule and the memory of the peak rank over time");
  answer.flag("--peak", flags->peak,
              "List the largest saved tensors of the peak rank. Each has the recomputation that frees it");
  add_launch_output(command, flags->launch, "Print script and configuration of a launch");
  add_views_output(command, flags->page);
  command.in(topic::output)
      .output("--snapshot", flags->snapshot,
              "Write a memory snapshot of one iteration to FILE, for pytorch.org/memory_viz");
  answer.flag("--no-suggestions", flags->no_suggestions, "Skip the search for changes that would help");
  add_verbose_flag(command, flags->output.verbose);
  add_output_flags(command, flags->output);
  command.examples(
      {"headroom estimate gpt3-175b --system dgx-a100-80g -t 8 -p 8 -m 3 -b 1 --global-batch 64 --sp "
       "--recompute selective",
       "headroom estimate llama-3-70b -t 8 -p 4 --devices 256 --sp --tokens 15T",
       "headroom estimate my-model.json --set layers=64 -t 8 -p 8 --sp"});
  command.footer("Exit code: 0 it fits, 2 bad input, 3 it does not fit.");
  command.on_run([flags, command, &exit_code] {
    flags->request.verbose = flags->output.verbose;
    take_launch_file(flags->request, flags->system);
    with_places(flags->request, [&] { exit_code = estimate(command, *flags); });
  });
}

}  // namespace headroom::cli
