#include "cli/launch_file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "cli/console.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/system_file.hpp"
#include "io/text.hpp"

namespace headroom::cli {
namespace {

bool overrides_key(const std::vector<std::string>& overrides, std::string_view key) {
  return std::any_of(overrides.begin(), overrides.end(), [&](const std::string& override) {
    return override.substr(0, override.find('=')) == key;
  });
}

std::string place_of(const LaunchSetting& setting) {
  std::string flag = setting.written.substr(0, setting.written.find_first_of(" ="));
  if (flag.ends_with(':')) flag.pop_back();  // "key: value" of YAML
  return text_of(setting.at) + (flag.empty() ? ": " + flag_of(setting.field) : ": " + printable(flag));
}

// Parsed from "NAME=VALUE".
std::map<std::string, std::string> environment_of(const std::vector<std::string>& given) {
  std::map<std::string, std::string> environment;
  for (const std::string& one : given) {
    const std::size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InputError("--env", "must be NAME=VALUE, not '" + printable(one) + "'");
    environment.insert_or_assign(one.substr(0, equals), one.substr(equals + 1));
  }
  return environment;
}

constexpr std::string_view of_environment = ": give it with --env NAME=VALUE";
constexpr std::string_view of_arguments = ": give the arguments of the script after --";

// What a problem needs that only a start of the script says, if it ends in `end`: "$3 (BATCH_SIZE)".
std::string needed_by(const Problem& problem, std::string_view end) {
  constexpr std::string_view start = "needs ";
  const std::size_t at = problem.rule.rfind(start);
  if (!problem.rule.ends_with(end) || at == std::string::npos) return {};
  return problem.rule.substr(at + start.size(), problem.rule.size() - end.size() - at - start.size());
}

// Values that variables from outside or arguments leave open, as one problem of each: "needs ${TP}, ${PP}: ...".
std::vector<Problem> with_needs_joined(const std::vector<Problem>& problems) {
  struct Need {
    std::string_view end;
    std::string_view advice;
    std::vector<std::string> names;
    std::size_t at = 0;
  };
  std::array<Need, 2> needs{
      Need{of_environment, "give each with --env NAME=VALUE", {}, 0},
      Need{of_arguments,
           "give the script's arguments after --, or set those with a (NAME) by --env NAME=VALUE",
           {},
           0}};
  std::vector<Problem> result;
  for (const Problem& problem : problems) {
    const auto need = std::find_if(needs.begin(), needs.end(),
                                   [&](const Need& it) { return !needed_by(problem, it.end).empty(); });
    if (need == needs.end() || need->names.empty()) {
      if (need != needs.end()) need->at = result.size();
      result.push_back(problem);
    }
    if (need == needs.end()) continue;
    if (std::string name = needed_by(problem, need->end); !contains(need->names, name))
      need->names.push_back(std::move(name));
  }
  for (const Need& need : needs) {
    if (need.names.size() > 1)
      result[need.at].rule = fmt::format("needs {}: {}", headroom::joined(need.names, ", "), need.advice);
  }
  return result;
}

std::string value_in(const LaunchedRun& run, std::string_view field) {
  const LaunchSetting* const setting = find_setting(run, field);
  return setting == nullptr ? std::string() : setting->value;
}

// Where neither the flags nor the file name GPUs, and the usual ones cannot multiply at the file's precision: the first that can.
void assume_system(LaunchedRun& run, const RequestFlags& flags, const SystemFlags& system) {
  if (!run.system.empty() || system.names_system) return;
  const auto precision = from_name<Precision>(flags.text("precision").value_or(value_in(run, "precision")));
  if (!precision) return;
  const PrecisionRow& row = row_of(*precision);
  const auto can = [&](std::string_view name) {
    const System candidate = read_system(std::string(name));
    const Device& device = candidate.performance->device;
    return has_peak(device, row.dtype) && (!row.scales_blocks || scales_blocks(device));
  };
  if (can(system.system)) return;
  for (const std::string_view name : {"dgx-h100-80g", "dgx-b200-180g"}) {
    if (!can(name)) continue;
    run.system = name;
    LaunchRemark& remark = run.remarks.emplace_back();
    remark.kind = LaunchRemarkKind::assumed;
    remark.text =
        fmt::format("{}, whose GPUs multiply in {}: the file names no GPUs (--system NAME)", name, row.name);
    return;
  }
}

// GPUs in a node of the system that the flags or the file name.
std::int64_t devices_of_node(const LaunchedRun& run, const SystemFlags& system) {
  const bool named = !run.system.empty() && meaning_of("system", run.system).names.size() == 1;
  return read_system(named && !system.names_system ? run.system : system.system).devices_per_node;
}

// What flags put in the place of the file's own: "--devices 16 (file: 8), --global-batch 128 (file: 64)".
std::string overridden_by(const RequestFlags& flags, const LaunchedRun& run) {
  std::vector<std::string> parts;
  const auto compare = [&](std::string_view flag, const std::string& given, const std::string& own) {
    if (given != own)
      parts.push_back(fmt::format("{} {} (file: {})", flag, printable(given), printable(own)));
  };
  if (std::int64_t devices = 0;
      run.devices && flags.devices && headroom::read_count(*flags.devices, devices).empty())
    compare("--devices", std::to_string(devices), std::to_string(*run.devices));
  Workload workload;
  Strategy unused;
  set_value(*find_field("sequence"), flags.text("sequence").value_or(value_in(run, "sequence")), unused,
            workload);
  for (const LaunchSetting& setting : run.strategy) {
    const StrategyField& field = *find_field(setting.field);
    const FieldFlag& flag = flags.fields[static_cast<std::size_t>(&field - strategy_fields.data())];
    if (flag.text || flag.on)
      compare(flag_of(field.name),
              plain_value(field, flag.text.value_or(flag.on.value_or(true) ? "yes" : "no"), workload),
              plain_value(field, setting.value, workload));
  }
  return headroom::joined(parts, ", ");
}

// `has_devices`: a flag says how many GPUs there are, or a search asks. `counts_nodes`: none does.
LaunchedRun read_run(RequestFlags& flags, bool has_devices, bool counts_nodes, const SystemFlags& system) {
  LaunchedRun run = read_launched_run(flags.model, launch_options(flags, flags.overrides));
  assume_system(run, flags, system);
  if (run.nodes && !run.devices && counts_nodes && value_in(run, "data_parallel").empty())
    take_whole_nodes(run, devices_of_node(run, system));
  std::vector<Problem> problems;
  std::vector<LaunchRemark> others;  // that are no error, and told beside it
  for (const LaunchRemark& remark : run.remarks) {
    others.push_back(remark);
    if (remark.kind != LaunchRemarkKind::unresolved || remark.field.empty()) continue;
    const StrategyField* const field = find_field(remark.field);
    const bool of_strategy = field != nullptr && field->name == remark.field;
    const bool given = remark.field == "data_parallel" && has_devices ? true
                       : of_strategy                                  ? flags.text(remark.field).has_value()
                                     : overrides_key(flags.overrides, remark.field) || run.model.has_value();
    if (given) continue;
    problems.push_back({text_of(remark.at), remark.text});
    others.pop_back();
  }
  std::swap(run.remarks, others);
  for (const std::string& line : told(run, flags.model)) say(line);
  if (const std::string flagged = overridden_by(flags, run); !flagged.empty())
    say(fmt::format("{}: flags override the file: {}", printable(flags.model), flagged));
  std::swap(run.remarks, others);
  problems = with_needs_joined(problems);
  if (!run.model && problems.empty())
    problems.push_back({flags.model, "names no model: give --model NAME, or --model and its config.json"});
  if (!problems.empty()) throw InputError(std::move(problems));
  return run;
}

void take_stack(const LaunchedRun& run, RequestFlags& flags, SystemFlags& system) {
  if (system.software.empty()) system.software = run.software;
  for (const LaunchSetting& setting : run.stack) {
    if (overrides_key(system.software_overrides, setting.field)) continue;
    system.software_overrides.push_back(setting.field + "=" + setting.value);
    flags.places.insert_or_assign(
        "--set-software " + setting.field,
        setting.written.empty() ? text_of(setting.at) + ": " + setting.field : place_of(setting));
  }
  if (!run.system.empty() && !system.names_system && meaning_of("system", run.system).names.size() == 1)
    system.system = run.system;
}

void put(RequestFlags& flags, const LaunchSetting& setting) {
  const StrategyField* const field = find_field(setting.field);
  FieldFlag& flag = flags.fields[static_cast<std::size_t>(field - strategy_fields.data())];
  if (flag.text || flag.on) return;
  if (field->value.empty()) {
    flag.on = setting.value == "yes";
  } else {
    flag.text = setting.value;
  }
  flags.places.insert_or_assign(flag_of(field->name), place_of(setting));
}

// Whether a flag of the command says what is recomputed, so that what the file says of it goes.
bool says_recomputation(const RequestFlags& flags) {
  return flags.text("recompute") || flags.text("recompute_ops");
}
bool is_of_recomputation(std::string_view field) { return field.starts_with("recompute"); }

// "TP 8 x PP 4 x CP 2, EP 8", and the batch.
std::string sizes_in(const LaunchedRun& run) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> names{{
      {"tensor_parallel", "TP"},
      {"pipeline_parallel", "PP"},
      {"virtual_pipeline", "VP"},
      {"context_parallel", "CP"},
      {"expert_parallel", "EP"},
      {"expert_tensor_parallel", "ETP"},
  }};
  std::vector<std::string> parts;
  for (const auto& [field, name] : names) {
    const std::string value = value_in(run, field);
    const bool always = name == "TP" || name == "PP";
    if (!value.empty() || always) parts.push_back(fmt::format("{} {}", name, value.empty() ? "1" : value));
  }
  std::string text = headroom::joined(parts, " x ");
  for (const auto& [field, name] :
       {std::pair{"micro_batch", "MBS"}, {"global_batch", "GBS"}, {"sequence", "sequence"}}) {
    const std::string value = value_in(run, field);
    if (!value.empty()) text += fmt::format(", {} {}", name, value);
  }
  return text;
}

std::int64_t count_in(const FlagText& text) {
  std::int64_t count = 1;
  return text && headroom::read_count(*text, count).empty() ? count : 1;
}

// The global batch of a run that states how many microbatches a rank sums, on the GPUs that are known by now.
std::optional<std::string> batch_of(const LaunchedRun& run, const RequestFlags& flags) {
  if (!run.accumulation) return std::nullopt;
  std::int64_t ranks = count_in(flags.text("data_parallel"));
  if (flags.devices && !flags.text("data_parallel")) {
    const std::int64_t of_replica = count_in(flags.text("tensor_parallel")) *
                                    count_in(flags.text("pipeline_parallel")) *
                                    count_in(flags.text("context_parallel"));
    ranks = std::max<std::int64_t>(count_in(flags.devices) / of_replica, 1);
  }
  return std::to_string(count_in(flags.text("micro_batch")) * *run.accumulation * ranks);
}

}  // namespace

LaunchOptions launch_options(const RequestFlags& flags, const std::vector<std::string>& overrides) {
  LaunchOptions options;
  options.overrides = overrides;
  options.model = flags.named_model.value_or("");
  options.arguments = flags.script_arguments;
  options.environment = environment_of(flags.environment);
  if (flags.run) {
    std::int64_t run = 1;
    std::vector<Problem> problems;
    read_count("--run", flags.run, run, problems);
    if (!problems.empty()) throw InputError(std::move(problems));
    options.run = static_cast<std::size_t>(run);
  }
  return options;
}

std::vector<std::string> told(const LaunchedRun& run, const std::string& source) {
  const std::string file = printable(source, std::string::npos);
  const std::string gpus =
      run.devices ? fmt::format("{} GPU{}, ", *run.devices, *run.devices == 1 ? "" : "s") : std::string();
  const std::string stack = run.software.empty() ? "" : " on " + run.software;
  std::vector<std::string> lines{
      fmt::format("{}: read as {}{}: {}{}", file, run.framework, stack, gpus, sizes_in(run))};
  constexpr std::array<std::pair<LaunchRemarkKind, std::string_view>, 4> kinds{{
      {LaunchRemarkKind::implied, "implied"},
      {LaunchRemarkKind::assumed, "assumed"},
      {LaunchRemarkKind::unmodelled, "left out"},
      {LaunchRemarkKind::unresolved, "not known before it runs"},
  }};
  for (const auto& [kind, title] : kinds) {
    std::string text;
    for (const LaunchRemark& remark : run.remarks) {
      if (remark.kind != kind) continue;
      if (!text.empty()) text += "; ";
      text += remark.text;
      if (remark.at.line > 0)
        text += remark.at.file == source ? fmt::format(" (line {})", remark.at.line)
                                         : fmt::format(" ({})", text_of(remark.at));
    }
    if (!text.empty()) lines.push_back(fmt::format("{}: {}: {}", file, title, text));
  }
  const auto idle = [&](bool by_pattern) {
    return std::count_if(run.remarks.begin(), run.remarks.end(), [&](const LaunchRemark& remark) {
      return remark.kind == LaunchRemarkKind::idle && remark.by_pattern == by_pattern;
    });
  };
  if (const auto count = idle(false); count > 0)
    lines.push_back(fmt::format("{}: {} neither memory nor time", file,
                                count == 1 ? "1 setting changes" : fmt::format("{} settings change", count)));
  if (const auto count = idle(true); count > 0)
    lines.push_back(fmt::format("{}: {} not looked at", file,
                                count == 1 ? "1 setting is of a group that is"
                                           : fmt::format("{} settings are of groups that are", count)));
  return lines;
}

void take_launch_file(RequestFlags& flags, SystemFlags& system) {
  flags.launched = is_launched_run(flags.model);
  if (!flags.launched) {
    const bool asks =
        flags.named_model || flags.run || !flags.script_arguments.empty() || !flags.environment.empty();
    if (asks)
      throw InputError(
          printable(flags.model),
          "is not a launch file: --model, --run, --env and --script-argument apply only to launch files");
    return;
  }
  const LaunchedRun run =
      read_run(flags, flags.devices.has_value(), !flags.devices && !flags.text("data_parallel"), system);
  const bool divides = flags.devices || flags.text("data_parallel");
  const bool recomputes = says_recomputation(flags);
  for (const LaunchSetting& setting : run.strategy) {
    const bool goes =
        (setting.field == "data_parallel" && divides) || (is_of_recomputation(setting.field) && recomputes);
    if (!goes) put(flags, setting);
  }
  if (!divides && run.devices && !flags.text("data_parallel")) {
    flags.devices = std::to_string(*run.devices);
    flags.places["--devices"] = printable(flags.model) + ": its GPUs";
  }
  if (!flags.text("global_batch")) flags.text("global_batch") = batch_of(run, flags);
  if (!flags.text("global_batch"))
    say(fmt::format(
        "{}: assumed: each replica sums 4 microbatches for each pipeline rank: the file does not say the "
        "global batch (--global-batch N)",
        printable(flags.model)));
  take_stack(run, flags, system);
}

std::optional<RequestFlags> take_launch_file(RequestFlags& flags, SystemFlags& system, SpaceFlags& space) {
  if (flags.model.empty() || !is_launched_run(flags.model)) {
    SystemFlags unused = system;
    if (!flags.model.empty()) take_launch_file(flags, unused);
    return std::nullopt;
  }
  flags.launched = true;
  RequestFlags own = flags;
  const LaunchedRun run = read_run(flags, true, !space.devices, system);
  for (const LaunchSetting& setting : run.strategy) put(own, setting);
  if (run.devices) own.devices = std::to_string(*run.devices);
  if (space.devices) own.devices = space.devices;
  // Only fields that a search leaves as they are.
  for (const LaunchSetting& setting : run.strategy) {
    const StrategyField& field = *find_field(setting.field);
    const bool kept =
        field.group == FieldGroup::saved || field.group == FieldGroup::model || field.name == "global_batch";
    if (kept) put(flags, setting);
  }
  for (std::size_t i = 0; i < space_fields.size(); ++i) {
    if (space_fields[i].field != "precision" || space.fields[i].values) continue;
    const std::string precision = value_in(run, "precision");
    if (!precision.empty()) space.fields[i].values = precision;
  }
  if (!space.devices && run.devices) space.devices = std::to_string(*run.devices);
  if (!flags.text("global_batch")) flags.text("global_batch") = batch_of(run, own);
  take_stack(run, flags, system);
  own.text("global_batch") = flags.text("global_batch");
  return own;
}

}  // namespace headroom::cli
