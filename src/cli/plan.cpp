#include "headroom/report/plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cli/capacity_flags.hpp"
#include "cli/choice_flags.hpp"
#include "cli/command.hpp"
#include "cli/console.hpp"
#include "cli/find_flags.hpp"
#include "cli/follow_up.hpp"
#include "cli/inquiry.hpp"
#include "cli/launch_file.hpp"
#include "cli/launch_output.hpp"
#include "cli/launched_space.hpp"
#include "cli/output.hpp"
#include "cli/page_output.hpp"
#include "cli/plan_lists.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_flags.hpp"
#include "cli/request_flags.hpp"
#include "cli/shards.hpp"
#include "cli/space_flags.hpp"
#include "cli/stopping.hpp"
#include "cli/system_flags.hpp"
#include "headroom/io/search_result.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

struct PlanFlags {
  std::optional<RequestFlags> own;   // the strategy of a launch file
  RequestFlags request;              // the part that no search sets: model, sequence, batch, what is kept
  SystemFlags system;                // of which the first, of several systems
  std::vector<std::string> systems;  // all that are compared
  SpaceFlags space;
  FindFlags find;
  CapacityFlags capacity;
  ListFlags lists;
  ChoiceFlags choice;
  FlagText top;
  FlagText threads;
  FlagText why;
  FlagText shard;
  FlagText time_limit;
  bool timing = false;
  LaunchOutput launch;
  PageOutput page;
  bool use_all_devices = false;
  OutputFlags output;
};

// Puts what an inverse question found into the flags that follow-up commands repeat.
void put_found(const PlanTask& task, RequestFlags& flags) {
  if (!task.found) return;
  switch (task.found->question.extreme) {
    case Extreme::min_devices:
    case Extreme::max_batch: break;
    case Extreme::max_sequence: flags.text("sequence") = std::to_string(task.base.workload.sequence); break;
    case Extreme::max_layers:
      flags.overrides.push_back("layers=" + std::to_string(task.base.model.layers));
      break;
  }
}

// What can be asked of one search only.
void refuse_lists(const PlanFlags& flags, const PlanQuestion& question, std::vector<Problem>& problems) {
  const bool inverse = flags.find.find || flags.find.deadline;
  if (question.device_counts.size() > 1 && (inverse || flags.why || flags.shard)) {
    problems.push_back({"--devices", "must be one number for --find, --deadline, --why and --shard"});
  }
  if (question.space.offload && flags.shard) {
    problems.push_back({"--try-offload", "does not go with --shard, whose parts say nothing of the host"});
  }
  if (question.offers.size() > 1 && (inverse || flags.why || flags.shard)) {
    problems.push_back({"--system", "must be one system for --find, --deadline, --why and --shard"});
  }
  if (flags.lists.batch_range && flags.find.find == "max-batch") {
    problems.push_back({"--batch-range", "does not go with --find max-batch, which looks for the batch"});
  }
  if (!flags.choice.measured.empty() && flags.shard)
    problems.push_back({"--measured", "does not go with --shard, whose parts are joined without the file"});
  if (!flags.choice.measured.empty() && flags.why)
    problems.push_back({"--why", "does not go with --measured: --why compares predicted times"});
  if (question.global_batches.size() > 1 && (flags.why || flags.shard)) {
    problems.push_back({"--global-batch", "must be one number for --why and --shard"});
  }
}

// Without a model: the example of the help, whatever other flags say of it.
void use_example(PlanFlags& flags) {
  if (!flags.request.model.empty()) return;
  flags.request.model = "gpt3-175b";
  if (flags.find.find || flags.find.deadline) return;
  if (!flags.space.devices) flags.space.devices = "64";
  if (!flags.request.text("global_batch")) flags.request.text("global_batch") = "64";
}

PlanQuestion read_plan_question(PlanFlags& flags, std::size_t shown, std::vector<Problem>& problems) {
  use_example(flags);
  PlanQuestion question{.with_launch = is_asked(flags.launch) || !flags.page.file.empty(),
                        .use_all_devices = flags.use_all_devices,
                        .accounts = shown};
  const Lists lists = take_lists(flags.request, flags.system, flags.space);
  question.base = read_request(flags.request, problems);
  question.default_batch = !lists.global_batches && flags.find.find != "max-batch";
  read_system_flags(flags.system, question.base, problems);
  use_stack_optimizer(flags.request, question.base);
  question.space = read_space(flags.space, question.base.software, problems);
  question.training = read_training(flags.capacity, problems);
  read_devices(lists, question, problems);
  // Of an inverse question, or of several numbers of GPUs, none is the one to be divided by.
  const bool one_count = !flags.find.find && !flags.find.deadline && question.device_counts.size() <= 1;
  if (problems.empty() && !lists.global_batches)
    use_default_batch(flags.request, one_count ? question.space : Space{}, question.base);
  if (flags.find.find == "max-sequence" && is_of_tokens(lists.global_batches.value_or("")))
    problems.push_back(
        {"--global-batch", "must be of sequences for --find max-sequence, which looks for their length"});
  read_lists(lists, flags.lists, flags.request, flags.system, flags.space, question, problems);
  refuse_lists(flags, question, problems);
  flags.systems = lists.systems;
  question.find =
      read_question(flags.find, {lists.devices, lists.global_batches, flags.request.text("sequence")},
                    question.training, problems);
  question.deadline = read_deadline(flags.find, problems);
  question.odds = read_odds(flags.find, problems);
  question.choice = read_choice_flags(flags.choice, question, problems);
  return question;
}

// What is asked, what of it is searched, and how the reply is to be shown.
struct Asked {
  PlanQuestion question;
  PlanTask task;
  PlanWords words;
};

// Prices and searches what the program that is asked for can start.
void start_by(LaunchTarget target, PlanQuestion& question) {
  question.base.software = searched_by(std::move(question.base.software), target);
  for (Offer& offer : question.offers) offer.software = searched_by(std::move(offer.software), target);
  narrow_to(target, question.base, question.space);
}

// Makes a value on the heap, in place: the search has little stack above it.
template <class Make>
auto on_heap(const Make& make) {
  using Value = decltype(make());
  return std::unique_ptr<Value>(new Value(make()));
}

// The strategy that `estimate` reads from a launch file; none where it reads no whole one.
std::optional<Strategy> launched_strategy(const RequestFlags& own, const SystemFlags& system,
                                          const Transformer& model) {
  std::vector<Problem> problems;
  Request request =
      read_request(own, problems, [&](const std::string&, const std::vector<std::string>&) { return model; });
  read_system_flags(system, request, problems);
  if (!problems.empty()) return std::nullopt;
  use_stack_defaults(own, request);
  return request.strategy;
}

// Answers an inverse question on its way. Throws InputError with all problems.
Asked read_asked(PlanFlags& flags, const Style& style, std::vector<Problem> problems,
                 const Watch& watch = {}) {
  std::int64_t top = 10;
  read_count("--top", flags.top, top, problems);
  const auto shown = static_cast<std::size_t>(top);
  Asked asked;
  const bool whole = style.format == Format::json || !flags.page.file.empty();
  asked.question = read_plan_question(flags, whole ? shown : 0, problems);
  asked.question.views = views_needed(flags.page, style, problems);
  refuse_files(flags.page.what_if, {flags.request.model, flags.system.system, flags.system.software},
               problems);
  std::vector<const Software*> stacks;
  if (asked.question.offers.empty()) stacks.push_back(&asked.question.base.software);
  for (const Offer& offer : asked.question.offers) stacks.push_back(&offer.software);
  asked.question.target = read_target(flags.launch, stacks, style, problems);
  if (!flags.launch.folder.empty() && flags.shard)
    problems.push_back({"--launch-dir", "does not go with --shard, which finds no whole plan"});
  if (!problems.empty()) throw InputError(std::move(problems));
  if (asked.question.target) start_by(*asked.question.target, asked.question);
  asked.question.shown.plans = shown;
  asked.question.shown.pareto = whole ? static_cast<std::size_t>(-1) : shown;
  asked.task = task_of(asked.question, watch);
  put_found(asked.task, flags.request);
  if (flags.why) {
    flags.request.text("global_batch") = std::to_string(asked.task.base.workload.global_batch);
    asked.question.why =
        read_inquiry("--why", *flags.why, {flags.request, flags.system}, asked.task.base, asked.task.space);
  }
  if (!flags.choice.measured.empty()) {
    AllFlags all{flags.request, flags.system};
    all.request.text("global_batch") = std::to_string(asked.task.base.workload.global_batch);
    asked.question.choice.measured =
        read_measured(flags.choice.measured, all, asked.task.base, asked.task.space, asked.question.target);
  }
  asked.words = {.why = flags.why.value_or(""), .shown = shown, .trials = asked.question.choice.trials};
  if (flags.own) asked.words.launched = launched_strategy(*flags.own, flags.system, asked.task.base.model);
  SystemFlags one = flags.system;
  for (const std::string& system : flags.systems) {
    one.system = system;
    asked.words.estimates.push_back(estimate_command(flags.request, one));
  }
  return asked;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The strategy of a launch file, to compare with the best plan.
struct OwnStrategy {
  RequestFlags flags;
  SystemFlags system;
};

// "yours takes 14.2 s, 11% longer".
void tell_own(const OwnStrategy& own, const PlanReply& reply) {
  if (reply.result.plans.empty()) return;
  const std::string file = printable(own.flags.model, std::string::npos);
  try {
    std::vector<Problem> problems;
    Request request = read_request(own.flags, problems);
    read_system_flags(own.system, request, problems);
    use_stack_defaults(own.flags, request);
    if (!problems.empty()) throw InputError(std::move(problems));
    const EstimateReply estimate =
        answer(EstimateQuestion{.request = std::move(request), .with_alternatives = false});
    const Plan* const plan = std::get_if<Plan>(&estimate.evaluation);
    const Strategy& strategy = account(estimate.evaluation).request.strategy;
    const std::string layout = fmt::format("TP {} x PP {} x DP {}", strategy.tensor_parallel,
                                           strategy.pipeline_parallel, strategy.data_parallel);
    if (!fits(estimate) || plan == nullptr || !plan->timing) {
      say(fmt::format("{}: yours does not fit: {}", file, layout));
      return;
    }
    const Seconds mine = plan->timing->iteration.total;
    const double longer = mine / reply.result.plans.front().iteration - 1;
    say(fmt::format("{}: yours takes {:.4g} s, {:.0f}% {}: {}", file, mine.count(), 100 * std::abs(longer),
                    longer < 0 ? "shorter" : "longer", layout));
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      const Problem typed = as_typed(problem);
      const auto place = own.flags.places.find(typed.where);
      say(fmt::format("{}: yours is not legal: {}: {}", file,
                      place == own.flags.places.end() ? typed.where : place->second, typed.rule));
    }
  }
}

// Adds the CUDA graphs that plans take, beyond what was asked for, to the commands that estimate them.
void add_taken_graphs(Asked& asked, const PlanReply& reply) {
  const CudaGraphs graphs = reply.base.software.cuda_graphs;
  if (graphs == asked.question.base.software.cuda_graphs || asked.question.offers.size() > 1) return;
  for (std::string& estimate : asked.words.estimates)
    estimate += " --set-software cuda_graphs=" + std::string(name_of(graphs));
}

ExitCode print(PlanReply& reply, const PlanWords& words, const PlanFlags& flags, const OutputFlags& output) {
  const Style style = style_of(output);
  write_page(flags.page, [&](const Style& json) { return render(reply, words, json); });
  if (!reply.accounts.empty()) {
    keep_asked(flags.page, false, is_asked(flags.launch), reply.accounts.front());
    std::optional<Launch>& launch = reply.accounts.front().launch;
    if (reply.choice) add_trials(flags.launch, reply, *reply.choice);
    write_launch(flags.launch, launch, output.file);
    if (!flags.launch.folder.empty() && launch && style.format != Format::json) launch->files.clear();
  }
  write(output, render(reply, words, style));
  // Rows of CSV have no place for it.
  if (reply.result.undecided && style.format == Format::csv) say(undecided_text(reply, words));
  return reply.result.plans.empty() || unanswered(reply) ? ExitCode::infeasible : ExitCode::done;
}

Inputs inputs_of(const PlanFlags& flags) {
  return {
      .models = {flags.request.model}, .systems = {flags.system.system}, .software = {flags.system.software}};
}

ExitCode write_part(const Command& command, const PlanFlags& flags, const Shard& shard,
                    const SearchResult& result) {
  const std::vector<std::string> arguments =
      command.arguments({flags_beside_the_result.begin(), flags_beside_the_result.end()});
  std::string text = part_start(part_head("plan", shard, arguments, inputs_of(flags)));
  bool first = true;
  for (const std::string& row : write_result(result)) text += part_row(row, std::exchange(first, false));
  write(flags.output, text + part_end());
  return ExitCode::done;  // for the whole it is for the merge to say
}

// The times at which an answer went on to its next part.
struct Times {
  Clock::time_point start = Clock::now();
  Clock::time_point search = start;
  Clock::time_point explanation = start;
};

AnswerTiming timing_of(const Times& times, const PlanReply& reply, const PlanWords& words,
                       const Style& style) {
  const auto between = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  };
  const Clock::time_point output = Clock::now();
  render(reply, words, style);  // once more, to be timed
  return {.search_seconds = between(times.search, times.explanation),
          .explanation_seconds = between(times.explanation, output),
          .output_seconds = seconds_since(output),
          .elapsed_seconds = seconds_since(times.start)};
}

// Puts what a recipe asks about into flags that were not given.
void use_recipe(PlanFlags& flags, bool has_system) {
  AllFlags all{flags.request, flags.system};
  use_recipe(all, flags.space, has_system);
  flags.request = std::move(all.request);
  flags.system = std::move(all.system);
}

ExitCode plan(const Command& command, PlanFlags& flags) {
  use_recipe(flags, command.is_given("--system"));
  const Style style = style_of(flags.output);
  Times times;
  std::vector<Problem> problems;
  std::int64_t threads = std::max(1U, std::thread::hardware_concurrency());
  read_count("--threads", flags.threads, threads, problems);
  const std::optional<Seconds> limit = read_time_limit(flags.time_limit, problems);
  const std::optional<Shard> shard = read_shard(command, flags.shard, problems);
  if (flags.shard && flags.timing) problems.push_back({"--timing", "does not go with --shard"});
  if (flags.shard && limit)
    problems.push_back({"--time-limit", "does not go with --shard, whose parts are whole"});
  refuse_page_of_shard(flags.page, flags.shard.has_value(), problems);
  std::optional<Stopping> stopping;  // a part that is stopped is of no use
  if (!shard) stopping.emplace(limit);
  std::optional<Progress> progress(std::in_place, "reading the question");
  SearchOptions options{.shard = shard.value_or(Shard{}), .threads = static_cast<unsigned>(threads)};
  if (stopping) options.watch.stops = [&] { return (*stopping)(); };
  options.watch.tells = [&](std::string_view step, std::int64_t done, std::int64_t of) {
    progress->update(step, done, of);
    if (step == explaining) times.explanation = Clock::now();
  };
  options.bounds = limit || progress->shows();
  if (progress->shows()) options.progress = [&](const SearchProgress& search) { progress->update(search); };
  const auto asked = on_heap([&] { return read_asked(flags, style, std::move(problems), options.watch); });

  times.search = Clock::now();
  tell(options.watch, "searching");
  SearchResult result = search(asked->task, options);
  if (shard) {
    progress.reset();
    return write_part(command, flags, *shard, result);
  }
  const auto reply = on_heap([&] {
    return reply_to(asked->question, std::move(asked->task), std::move(result), asked->question.why, options);
  });
  add_taken_graphs(*asked, *reply);
  if (const std::optional<Stop> stop = stopping->end()) asked->words.stop = *stop;
  if (reply->result.undecided && (flags.choice.trials || !flags.choice.measured.empty()))
    say("note: --trial and --measured need a finished search: this one was stopped");
  progress.reset();
  if (flags.timing) asked->words.timing = timing_of(times, *reply, asked->words, style);
  const ExitCode code = print(*reply, asked->words, flags, flags.output);
  if (flags.own) tell_own({*flags.own, flags.system}, *reply);
  return code;
}

void add_flags(Command command, PlanFlags& flags) {
  add_search_flags(command, flags.request, flags.system, flags.space);
  add_recipe_flag(command, flags.request);
  command.find("model").required(false).describe(
      "MODEL",
      "Model's name (headroom list models), model file or launch script. Without one: gpt3-175b on 64 GPUs");
  // A question may look for them, and several may be compared.
  command.find("--system")
      .describe("SYSTEM",
                "System's name (headroom list systems) or file. Several "
                "(dgx-h100-80g,dgx-b200-180g) are compared by their best plans");
  command.find("--global-batch")
      .describe("N|N:M",
                "Sequences per iteration (GBS), or '4M tokens' (default: about 4M tokens, as the GPUs divide "
                "them). Of several ('512;1024', 960:1536, 960:1536:8) the batch with the most tokens per "
                "second wins");
  command.find("--devices")
      .required(false)
      .describe("N,N,...",
                "Number of GPUs. Several are compared by their best plans. With --find min-devices: the most "
                "to try");
  command.in(topic::search_space)
      .flag("--use-all-devices", flags.use_all_devices, "Use all GPUs even where fewer train faster");
  add_find_flags(command, flags.find);
  add_capacity_flags(command, flags.capacity);
  add_list_flags(command, flags.lists);
  add_choice_flags(command, flags.choice);
  const Command answer = command.in(topic::answer);
  answer.option("--top", flags.top, "N", "Number of plans to show (10). One is shown for each TP x PP x DP");
  answer.option("--why", flags.why, "'FLAGS'",
                "Explain why a strategy is not among the plans. FLAGS are those of estimate");
  command.in(topic::work)
      .option("--threads", flags.threads, "N",
              "Search threads (default: all cores); the answer does not depend on them");
  add_launch_output(command, flags.launch, "Print script and configuration of the best plan");
  add_shard_flag(command, flags.shard);
  add_time_limit_flag(command, flags.time_limit);
  add_views_output(command, flags.page);
  answer.flag("--timing", flags.timing,
              "Print the time of the search, of its explanation, of the output and of the whole answer");
  add_verbose_flag(command, flags.output.verbose);
  add_output_flags(command, flags.output);
}

}  // namespace

ExitCode merge_plan(std::vector<PartReader>& parts, const OutputFlags& flags) {
  ArgumentReader reader;
  PlanFlags asked;
  add_flags(reader.command(), asked);
  reader.read(parts.front().head().arguments);
  Asked question = read_asked(asked, style_of(flags), {});
  check_inputs(parts, inputs_of(asked));
  std::vector<SearchResult> results;
  results.reserve(parts.size());
  for (PartReader& part : parts) results.push_back(read_result(part, question.task.base.strategy));
  PlanReply reply =
      reply_to(question.question, std::move(question.task), merged(results), question.question.why,
               {.threads = std::max(1U, std::thread::hardware_concurrency())});
  add_taken_graphs(question, reply);
  return print(reply, question.words, asked, flags);
}

void add_plan(Command program, ExitCode& exit_code) {
  Command command = program.add_command(
      "plan", "Finds the fastest strategies that fit a model, a system, GPUs and a batch");
  const auto flags = std::make_shared<PlanFlags>();
  add_flags(command, *flags);
  command.examples(
      {"headroom plan gpt3-175b --system dgx-a100-80g --devices 64 --global-batch 64",
       "headroom plan llama-3-70b --devices 256 --global-batch 1024 -t 4,8 --max-micro-batch 4",
       "headroom plan gpt3-175b --devices 64 --global-batch 64 --why '-t 8 -p 8 --recompute none'",
       "headroom plan gpt3-175b --devices 64 --global-batch 64 --find max-sequence",
       "headroom plan gpt3-175b --global-batch 1536 --tokens 300B --deadline 30d --price-per-gpu-hour 2.50",
       "headroom plan gpt3-175b --devices 512,768,1024 --global-batch 960:1536 --tokens 300B",
       "headroom plan llama-3-70b --devices 512 --system h100,b200 --tokens 15T --price h100=2.5,b200=4.1"});
  command.footer(
      "Ctrl-C once ends the search with the best found so far, twice the program.\n"
      "Exit code: 0 done, 2 bad input, 3 nothing fits or meets what is asked.");
  command.on_run([flags, command, &exit_code] {
    flags->request.verbose = flags->output.verbose;
    flags->own = take_launch_file(flags->request, flags->system, flags->space);
    with_places(flags->request, [&] { exit_code = plan(command, *flags); });
  });
}

}  // namespace headroom::cli
