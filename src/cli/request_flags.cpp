#include "cli/request_flags.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/launch_file.hpp"
#include "cli/notes.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/model/hybrid_pattern.hpp"
#include "headroom/parallel/stack_defaults.hpp"
#include "headroom/parallel/stage_layout.hpp"

namespace headroom::cli {
namespace {

const char* topic_of(FieldGroup group) {
  switch (group) {
    case FieldGroup::model: return topic::model;
    case FieldGroup::layout: return topic::parallelism;
    case FieldGroup::sharing:
    case FieldGroup::saved:
    case FieldGroup::recompute: break;
  }
  return topic::memory;
}

void add_field(Command command, RequestFlags& flags, std::size_t i) {
  const StrategyField& field = strategy_fields[i];
  const std::string names = flag_names(field);
  const std::string help(field.help);
  command = command.in(topic_of(field.group));
  if (field.value.empty()) {
    command.flag(names, flags.fields[i].on, help);
  } else {
    command.option(names, flags.fields[i].text, std::string(field.value), help);
  }
}

void add_fields(Command command, RequestFlags& flags, FieldGroup group) {
  for (std::size_t i = 0; i < strategy_fields.size(); ++i) {
    if (strategy_fields[i].group == group) add_field(command, flags, i);
  }
}

std::size_t index_of(std::string_view name) {
  const StrategyField* const field = find_field(name);
  EXPECTS(field != nullptr);
  return static_cast<std::size_t>(field - strategy_fields.data());
}

// Tells what is assumed of it, but for what the flags say.
Transformer told_model(const RequestFlags& flags, const std::vector<std::string>& overrides) {
  if (flags.launched) {
    LaunchedRun run = read_launched_run(flags.model, launch_options(flags, overrides));
    tell(run.assumed, flags);
    EXPECTS(run.model.has_value());
    return with_assumptions({std::move(*run.model), std::move(run.assumed)});
  }
  const ImportedModel imported = import_model(flags.model, overrides);
  tell_once(remarks_on_model(flags.model));
  tell(imported.assumed, flags);
  return with_assumptions(imported);
}

// A pattern of hybrid layers says stages of a model that has these layers alone.
std::string rule_of_pattern(const std::string& text, const Request& request) {
  const std::vector<std::int64_t>& by_stage = request.strategy.stage_layers;
  const std::int64_t layers = std::accumulate(by_stage.begin(), by_stage.end(), std::int64_t{0});
  if (!hybrid_layers(text) || layers != request.model.layers)
    return {};  // the second is refused by the rules
  const std::optional<std::string> pattern = hybrid_pattern(request.model, by_stage);
  if (pattern && pattern->starts_with(text.substr(0, text.find('/')))) return {};
  return "must have the layers of the model" + (pattern ? ", " + *pattern : std::string());
}

// Reads "first=7,last=6", layers of the end ranks. Returns the rule that they break.
std::string read_end_ranks(std::string_view text, Request& request) {
  EndRanks ends;
  for (const std::string_view part : parts_of(text)) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    std::int64_t layers = 0;
    std::string rule = headroom::read_count(part.substr(std::min(equals + 1, part.size())), layers);
    if (!rule.empty()) return rule;
    if (name != "first" && name != "last") return "must be first=N,last=N" + not_this(text);
    std::int64_t& end = name == "first" ? ends.first : ends.last;
    if (end != 0) return "names '" + std::string(name) + "' twice";
    end = layers;
  }
  Strategy& strategy = request.strategy;
  if (request.model.layers < 1 || strategy.pipeline_parallel < 1 || strategy.virtual_pipeline < 1)
    return {};  // said elsewhere
  auto layers =
      layers_with_ends(ends, request.model.layers, strategy.pipeline_parallel, strategy.virtual_pipeline);
  if (auto* const rule = std::get_if<std::string>(&layers)) return std::move(*rule);
  strategy.stage_layers = std::get<std::vector<std::int64_t>>(std::move(layers));
  return {};
}

// Everything that the flags say of the strategy and the workload.
void read_fields(const RequestFlags& flags, Request& request, std::vector<Problem>& problems) {
  const auto read = [&](std::size_t i) {
    const auto& [text, on] = flags.fields[i];
    if (!text && !on) return;
    const std::string name(strategy_fields[i].name);
    const bool stages = name == "stage_layers";
    std::string rule = stages && text->find('=') != std::string::npos
                           ? read_end_ranks(*text, request)
                           : apply(Edit{name, text.value_or(on.value_or(true) ? "yes" : "no")},
                                   request.strategy, request.workload);
    if (rule.empty() && stages) rule = rule_of_pattern(*text, request);
    if (!rule.empty()) problems.push_back(by_flag({name, rule}));
  };
  const std::size_t sequence = index_of("sequence");  // by which tokens of a batch are counted
  read(sequence);
  for (std::size_t i = 0; i < strategy_fields.size(); ++i) {
    if (i != sequence) read(i);
  }
  const FlagText& policy = flags.text("recompute");
  const bool by_ops = flags.text("recompute_ops").has_value();
  // Megatron-LM's --recompute-granularity selective goes with --recompute-modules.
  if (policy && by_ops && *policy != "ops" && *policy != "selective") {
    problems.push_back({"--recompute-ops", "is a policy of its own: leave out --recompute " + *policy});
  }
  if (policy == "ops" && !by_ops) {
    problems.push_back({"--recompute", "ops needs --recompute-ops with their names"});
  }
}

// d, where it is not given, follows from the number of devices.
void read_devices(const RequestFlags& flags, Strategy& strategy, std::vector<Problem>& problems) {
  if (!flags.devices) return;
  std::int64_t devices = 0;
  read_count("--devices", flags.devices, devices, problems);
  const std::int64_t replica = devices_of_replica(strategy);
  if (devices % replica != 0) {
    problems.push_back({"--devices", "must be a multiple of " + sizes_of_replica(strategy) + " (" +
                                         std::to_string(devices) + " is not a multiple of " +
                                         std::to_string(replica) + ")"});
  } else if (const FlagText& data = flags.text("data_parallel");
             data && devices != replica * strategy.data_parallel) {
    problems.push_back({"--devices", "contradicts --data-parallel: " + std::to_string(replica) + " x " +
                                         *data + " is not " + std::to_string(devices) +
                                         "; leave out one of them"});
  } else if (devices > 0) {
    strategy.data_parallel = devices / replica;
  }
}

}  // namespace

std::string sizes_of_replica(const Strategy& strategy) {
  const char* const context = strategy.context_parallel > 1 ? " times --context-parallel" : "";
  return std::string("--tensor-parallel") + context + " times --pipeline-parallel";
}

FlagText& RequestFlags::text(std::string_view field) { return fields[index_of(field)].text; }
const FlagText& RequestFlags::text(std::string_view field) const { return fields[index_of(field)].text; }

void add_launch_flags(Command command, RequestFlags& flags) {
  command = command.in(topic::launch_file);
  command.option("--model", flags.named_model, "MODEL", "The model of a launch file that names none");
  command.option("--run", flags.run, "N", "The run to take of a script that starts several (1)");
  command.option("--env", flags.environment, "NAME=VALUE", "A variable that a script is started with");
  command.option("--script-argument", flags.script_arguments, "WORD",
                 "An argument of a script, $1, $2, ...; the words after -- are some, too");
}

void add_model_flags(Command command, RequestFlags& flags) {
  command = command.in(topic::model);
  command
      .option("model", flags.model, "MODEL",
              "Model's name (headroom list models), model file or launch script")
      .required();
  add_launch_flags(command, flags);
  command.option("--set", flags.overrides, "KEY=VALUE",
                 "Override a field of the model: hidden=8192. Another is kernels.softmax_dtype=fp32");
  command.option("--attention", flags.attention, "KERNEL",
                 "unfused, flash or sdpa_math; short for --set kernels.attention=KERNEL");
  add_fields(command, flags, FieldGroup::model);
  command.option("--detail", flags.detail, "DETAIL",
                 "paper (default) or exact: also count the small buffers that the paper leaves out");
}

void add_batch_flags(Command command, RequestFlags& flags) {
  for (const std::string_view field : {"sequence", "micro_batch", "global_batch"})
    add_field(command, flags, index_of(field));
}

void add_saved_flags(Command command, RequestFlags& flags) { add_fields(command, flags, FieldGroup::saved); }

void add_layout_flags(Command command, RequestFlags& flags) {
  add_fields(command, flags, FieldGroup::layout);
  command.in(topic::parallelism)
      .option("--devices", flags.devices, "N", "Number of GPUs; the DP size follows");
  add_fields(command, flags, FieldGroup::sharing);
  add_saved_flags(command, flags);
}

void add_request_flags(Command command, RequestFlags& flags) {
  add_model_flags(command, flags);
  add_layout_flags(command, flags);
  add_fields(command, flags, FieldGroup::recompute);
}

void tell(const HubAssumption& assumption) { say(fmt::format("assumed: {}", assumption.sentence)); }

void tell(const std::vector<HubAssumption>& assumed, const RequestFlags& flags) {
  std::size_t hidden = 0;
  for (const HubAssumption& assumption : assumed) {
    const bool of_flag = assumption.field == "sequence";
    if (of_flag && flags.text("sequence")) continue;
    if (of_flag || flags.verbose) {
      tell(assumption);
    } else {
      ++hidden;
    }
  }
  if (hidden > 0)
    say(fmt::format("{} assumption{} about the model: -v lists them", hidden, hidden == 1 ? "" : "s"));
}

Request read_request(const RequestFlags& flags, std::vector<Problem>& problems, const ReadModel& read) {
  Request request;
  collect(problems, [&] {
    std::vector<std::string> overrides = flags.overrides;
    AttentionKernel attention{};
    read_choice("--attention", flags.attention, attention, problems);
    if (flags.attention && from_name<AttentionKernel>(*flags.attention)) {
      overrides.push_back("kernels.attention=" + *flags.attention);
    }
    request.model = read ? read(flags.model, overrides) : told_model(flags, overrides);
  });
  request.workload.sequence = request.model.sequence;
  read_choice("--detail", flags.detail, request.detail, problems);
  read_fields(flags, request, problems);
  read_devices(flags, request.strategy, problems);

  if (problems.empty() && !flags.text("global_batch"))
    request.workload.global_batch = default_global_batch(request.strategy);
  return request;
}

}  // namespace headroom::cli
