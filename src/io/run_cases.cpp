#include "headroom/io/run_cases.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "calibrate/network_words.hpp"
#include "headroom/calibrate/fit_runs.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "text.hpp"

namespace headroom {

namespace {

bool names_system(const PublishedSource* source) { return source != nullptr && source->system.has_value(); }

// The stack that a run states, or that the name of its sharding is of.
std::string stack_of(const MeasuredRun& run, const std::string& otherwise) {
  return run.stack ? *run.stack : run.sharding_stack.value_or(otherwise);
}

std::vector<UnreadMember> unread_members_of(const std::vector<MeasuredRun>& runs) {
  std::map<std::string, std::size_t> counts;
  for (const MeasuredRun& run : runs) {
    for (const std::string& name : run.unread) ++counts[name];
  }
  std::vector<UnreadMember> members;
  members.reserve(counts.size());
  for (const auto& [name, count] : counts) members.push_back({name, count});
  std::stable_sort(members.begin(), members.end(),
                   [](const UnreadMember& x, const UnreadMember& y) { return x.runs > y.runs; });
  return members;
}

}  // namespace

RunPresets presets_of(const MeasuredRun& run, const PublishedSource* source) {
  if (names_system(source))
    return {.system = source->system, .software = run.stack.value_or(source->software)};
  const std::optional<System> system = system_of_device(run.device);
  const std::string otherwise = system ? system->default_software : Software().name;
  return {.system = system ? std::optional(system->name) : std::nullopt,
          .software = source != nullptr ? run.stack.value_or(source->software) : stack_of(run, otherwise)};
}

RunCases cases_of(const std::vector<MeasuredRun>& runs, const std::optional<std::string>& system,
                  const std::optional<std::string>& software) {
  RunCases result;
  std::map<std::string, System> systems;  // each read once
  std::map<std::string, Software> stacks;
  std::map<std::string, PublishedSource> sources;
  std::map<std::string, RunPresets> of_devices;
  const auto presets_for = [&](const MeasuredRun& run, const PublishedSource* source) {
    if (names_system(source)) return presets_of(run, source);
    RunPresets presets;
    if (system) {
      if (!systems.contains(*system)) systems[*system] = read_system(*system);
      presets = {.system = system, .software = systems[*system].default_software};
    } else {
      MeasuredRun device{.device = run.device};
      if (!of_devices.contains(run.device)) of_devices[run.device] = presets_of(device, nullptr);
      presets = of_devices[run.device];
    }
    presets.software =
        source != nullptr ? run.stack.value_or(source->software) : stack_of(run, presets.software);
    return presets;
  };
  std::set<std::string> judged;
  result.unread = unread_members_of(runs);
  for (const MeasuredRun& run : runs) {
    if (!run.mistakes.empty()) {  // its names may be of nothing
      result.skipped.push_back({label_of(run, nullptr), run.name, reasons_to_skip(run, nullptr, {})});
      continue;
    }
    const PublishedSource* source = nullptr;
    if (!run.key.empty()) {
      if (!sources.contains(run.key)) sources[run.key] = read_source(run.key);
      source = &sources[run.key];
    }
    const auto skip = [&](std::vector<std::string> reasons) {
      result.skipped.push_back({label_of(run, source), run.name, std::move(reasons)});
    };
    const RunPresets presets = presets_for(run, source);
    const std::optional<std::string> name = system ? system : presets.system;
    const std::string stack = software.value_or(presets.software);
    if (!stacks.contains(stack)) stacks[stack] = read_software(stack);
    if (!name) {
      std::vector<std::string> reasons = reasons_to_skip(run, source, stacks[stack]);
      reasons.push_back(run.device.empty() ? "not stated: gpu (--system names a system for it)"
                                           : "no system has its GPU, " + run.device);
      skip(std::move(reasons));
      continue;
    }
    if (!systems.contains(*name)) systems[*name] = read_system(*name);
    // What was chosen by hand or is a source's own stays.
    const bool by_device = !system && !names_system(source);
    const System& named = systems[*name];
    const System of_run = by_device ? system_of_run(named, run.devices_per_node, run.interconnect) : named;
    RunCase made = case_of(run, source, of_run, stacks[stack]);
    if (auto* reasons = std::get_if<std::vector<std::string>>(&made)) {
      skip(std::move(*reasons));
      continue;
    }
    result.measurements.cases.push_back(std::move(std::get<MeasuredCase>(made)));
    if (source == nullptr || !judged.insert(run.key).second) continue;
    for (Target& target : targets_of(*source)) result.measurements.targets.push_back(std::move(target));
  }
  return result;
}

std::string text_of(const SkippedRun& run) {
  std::string text;
  for (const std::string& reason : run.reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

ChosenRuns choose_runs(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& fit,
                       const std::string& base, const std::optional<std::string>& software) {
  std::vector<Problem> problems;
  for (const std::string& name : fit) {
    std::vector<std::string_view> names;
    names.reserve(runs.size());
    for (const MeasuredRun& run : runs) names.push_back(run.name);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    problems.push_back({"fit", "no run is called '" + printable(name) + "'" + did_you_mean(name, names)});
  }
  const bool marked = std::any_of(runs.begin(), runs.end(), [](const MeasuredRun& run) { return run.fit; });
  const bool chosen = !fit.empty() || marked;
  const System system = read_system(base);
  std::set<std::string> taken;  // names of runs that are fitted or held out
  ChosenRuns result;
  for (const MeasuredRun& run : runs) {
    const bool named = std::find(fit.begin(), fit.end(), run.name) != fit.end();
    const bool wanted = !chosen || (fit.empty() ? run.fit : named);
    std::vector<std::string> reasons;
    if (!run.mistakes.empty()) {
      reasons = reasons_to_skip(run, nullptr, {});
    } else if (!run.device.empty() && !same_device(run.device, system.device)) {
      reasons = {"it is of " + run.device + ", and " + system.name + " has " + system.device};
    } else if (!run.iteration) {
      reasons = {"not stated: an iteration time"};
    } else if (taken.contains(run.name)) {
      reasons = {"an earlier run has its name"};
    } else {
      RunCases made = cases_of({run}, base, software);
      std::string untold;
      if (made.skipped.empty() && wanted && system.performance)
        untold = unexplained(made.measurements.cases.front(), system);
      if (made.skipped.empty() && untold.empty()) {
        taken.insert(run.name);
        (wanted ? result.fitted : result.held_out).push_back(std::move(made.measurements.cases.front()));
        continue;
      }
      reasons = untold.empty() ? made.skipped.front().reasons : std::vector{std::move(untold)};
    }
    std::optional<PublishedSource> source;
    if (run.mistakes.empty() && !run.key.empty()) source = read_source(run.key);
    const SkippedRun skipped{label_of(run, source ? &*source : nullptr), run.name, std::move(reasons)};
    if (named) {
      problems.push_back({"run '" + run.name + "'", "cannot be fitted: " + text_of(skipped)});
    } else {
      result.skipped.push_back(skipped);
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return result;
}

}  // namespace headroom
