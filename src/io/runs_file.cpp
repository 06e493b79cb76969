#include "headroom/io/runs_file.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "document.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "object_reader.hpp"
#include "settings_fields.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr Range sizes{1, 1 << 28};
constexpr Range run_counts{1, 1 << 22};
constexpr Range stages{0, 3};

// What a run says in words or in figures that other members give.
constexpr std::string_view described[] = {"/quality",
                                          "/complete",
                                          "/complete_strict",
                                          "/training_mode",
                                          "/where",
                                          "/gpus_per_node",
                                          "/interconnect",
                                          "/software",
                                          "/caveats",
                                          "/tflops_convention",
                                          "/timing_note",
                                          "/tokens_rounded",
                                          "/num_gpus",
                                          "/peak_reserved_gib",
                                          "/model/name",
                                          "/model/params_b",
                                          "/model/moe",
                                          "/source/url",
                                          "/batch/num_microbatches",
                                          "/derived/how",
                                          "/derived/tokens_per_s_per_gpu",
                                          "/derived/model_tflops_per_gpu",
                                          "/derived/samples_per_gpu_per_s_reported",
                                          "/measured/tokens_per_s_per_gpu",
                                          "/measured/tflops_per_gpu",
                                          "/measured/mfu_pct",
                                          "/measured/hfu_pct"};

struct WrittenRun {
  MeasuredRun run;
  std::optional<double> iteration;  // seconds
};

constexpr auto source_fields = [](auto& fields, auto& it) {
  fields.optional("key", it.run.key);
  fields.optional("title", it.run.source);
};

constexpr auto run_model_fields = [](auto& fields, auto& it) {
  fields.required("layers", it.run.layers, run_counts);
  fields.required("hidden", it.run.hidden, sizes);
  fields.optional("ffn_hidden", it.run.feedforward, sizes);
  fields.required("heads", it.run.heads, run_counts);
  fields.optional("kv_heads", it.run.key_value_heads, run_counts);
  fields.optional("vocab", it.run.vocabulary, sizes);
  fields.required("seq_len", it.run.sequence, sizes);
  fields.optional("gated_mlp", it.run.gated);
};

constexpr auto parallel_fields = [](auto& fields, auto& it) {
  fields.required("tp", it.run.tensor_parallel, run_counts);
  fields.optional("sp", it.run.sequence_parallel);
  fields.required("pp", it.run.pipeline_parallel, run_counts);
  fields.optional("vpp", it.run.virtual_pipeline, run_counts);
  fields.optional("cp", it.run.context_parallel, run_counts);
  fields.optional("ep", it.run.expert_parallel, run_counts);
  fields.required("dp", it.run.data_parallel, run_counts);
  fields.optional("zero_stage", it.run.zero_stage, stages);
  fields.optional("fsdp", it.run.fully_sharded);
  fields.optional("schedule", it.run.schedule);
};

constexpr auto batch_fields = [](auto& fields, auto& it) {
  fields.required("global", it.run.global_batch, run_counts);
  fields.required("micro", it.run.micro_batch, run_counts);
};

constexpr auto measured_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
  fields.optional("peak_memory_gb", it.run.memory);
};

// Arithmetic on published figures, for those who published none of time.
constexpr auto derived_fields = [](auto& fields, auto& it) {
  fields.optional("iteration_time_s", it.iteration);
};

constexpr auto run_fields = [](auto& fields, auto& it) {
  fields.required("id", it.run.name);
  fields.object("source", it, source_fields);
  fields.optional("gpu", it.run.device);
  fields.optional("dense", it.run.dense);
  fields.required_object("model", it, run_model_fields);
  fields.required_object("parallel", it, parallel_fields);
  fields.required_object("batch", it, batch_fields);
  fields.optional("recompute", it.run.recompute);
  fields.optional("dtype", it.run.dtype);
  fields.optional("flash_attention", it.run.flash_attention);
  fields.optional("overlap", it.run.overlap);
  fields.object("derived", it, derived_fields);
  fields.required_object("measured", it, measured_fields);  // after what it takes precedence over
  fields.optional("memory_unit", it.run.memory_unit);
  fields.object("settings", it.run.settings, run_settings_fields);
  fields.optional("fit", it.run.fit);
};

void drop_nulls(Json& value) {
  if (!value.is_structured()) return;
  for (auto member = value.begin(); member != value.end();) {
    drop_nulls(*member);
    member = member->is_null() && value.is_object() ? value.erase(member) : std::next(member);
  }
}

// A run as ObjectReader wants it: without nulls and words, and "FULL_SHARD" as true.
void normalize(Json& run) {
  drop_nulls(run);
  if (!run.is_object()) return;
  for (const std::string_view path : described) {
    const JsonPointer field{std::string(path)};
    const JsonPointer parent = field.parent_pointer();
    if (run.contains(parent) && run.at(parent).is_object()) run.at(parent).erase(field.back());
  }
  const JsonPointer sharded("/parallel/fsdp");
  if (run.contains(sharded) && run.at(sharded).is_string()) run.at(sharded) = true;
}

}  // namespace

std::vector<MeasuredRun> parse_runs(std::string_view text, const std::string& file) {
  Document document = read_document(text, file);
  constexpr std::size_t most_runs = 10'000;
  if (!document.root.is_array()) throw InputError(file, "must be a list of runs");
  if (document.root.empty() || document.root.size() > most_runs) {
    throw InputError(file, "must hold between 1 and " + std::to_string(most_runs) + " runs, not " +
                               std::to_string(document.root.size()));
  }
  std::vector<MeasuredRun> runs;
  for (std::size_t i = 0; i < document.root.size(); ++i) {
    const JsonPointer at = JsonPointer() / i;
    normalize(document.root[i]);
    WrittenRun written;
    ObjectReader::read(document, at, written, run_fields);
    if (written.iteration) written.run.iteration = Seconds(*written.iteration);
    const MeasuredRun& run = runs.emplace_back(std::move(written.run));
    if (std::string rule = run.key.empty() ? "" : unknown_source(run.key); !rule.empty())
      document.report(at / "source" / "key", std::move(rule));
    if (run.heads > 0 && run.hidden % run.heads != 0) {
      document.report(at / "model" / "hidden", "must be divisible by heads (" + std::to_string(run.hidden) +
                                                   " % " + std::to_string(run.heads) + " = " +
                                                   std::to_string(run.hidden % run.heads) + ")");
    }
  }
  document.finish();
  return runs;
}

std::vector<MeasuredRun> read_runs(const std::string& path) { return parse_runs(read_file(path), path); }

RunPresets presets_of(const MeasuredRun& run, const PublishedSource* source) {
  if (source != nullptr) return {.system = source->system, .software = source->software};
  if (const std::optional<System> system = system_of_device(run.device))
    return {.system = system->name, .software = system->default_software};
  return {.system = std::nullopt, .software = Software().name};
}

RunCases cases_of(const std::vector<MeasuredRun>& runs, const std::optional<std::string>& system,
                  const std::optional<std::string>& software) {
  RunCases result;
  std::map<std::string, System> systems;  // each read once
  std::map<std::string, Software> stacks;
  std::map<std::string, PublishedSource> sources;
  std::map<std::string, RunPresets> of_devices;
  const auto presets_for = [&](const MeasuredRun& run, const PublishedSource* source) {
    if (source != nullptr) return presets_of(run, source);
    if (system) {
      if (!systems.contains(*system)) systems[*system] = read_system(*system);
      return RunPresets{.system = system, .software = systems[*system].default_software};
    }
    if (!of_devices.contains(run.device)) of_devices[run.device] = presets_of(run, nullptr);
    return of_devices[run.device];
  };
  std::set<std::string> judged;
  for (const MeasuredRun& run : runs) {
    const PublishedSource* source = nullptr;
    if (!run.key.empty()) {
      if (!sources.contains(run.key)) sources[run.key] = read_source(run.key);
      source = &sources[run.key];
    }
    const auto skip = [&](std::string reason) {
      result.skipped.push_back({label_of(run, source), run.name, std::move(reason)});
    };
    const RunPresets presets = presets_for(run, source);
    const std::optional<std::string> name = system ? system : presets.system;
    const std::string stack = software.value_or(presets.software);
    if (!name) {
      const std::string device = run.device.empty() ? "an unnamed device" : run.device;
      skip("system not known (" + device + "): name a system for it");
      continue;
    }
    if (!systems.contains(*name)) systems[*name] = read_system(*name);
    if (!stacks.contains(stack)) stacks[stack] = read_software(stack);
    RunCase made = case_of(run, source, systems[*name], stacks[stack]);
    if (auto* reason = std::get_if<std::string>(&made)) {
      skip(std::move(*reason));
      continue;
    }
    result.measurements.cases.push_back(std::move(std::get<MeasuredCase>(made)));
    if (source == nullptr || !judged.insert(run.key).second) continue;
    for (Target& target : targets_of(*source)) result.measurements.targets.push_back(std::move(target));
  }
  return result;
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
  ChosenRuns result;
  for (const MeasuredRun& run : runs) {
    const bool named = std::find(fit.begin(), fit.end(), run.name) != fit.end();
    const bool wanted = !chosen || (fit.empty() ? run.fit : named);
    std::string reason;
    if (!run.device.empty() && !same_device(run.device, system.device)) {
      reason = "it is of " + run.device + ", and " + system.name + " has " + system.device;
    } else {
      RunCases made = cases_of({run}, base, software);
      if (made.skipped.empty()) {
        (wanted ? result.fitted : result.held_out).push_back(std::move(made.measurements.cases.front()));
        continue;
      }
      reason = made.skipped.front().reason;
    }
    if (wanted && chosen) {
      problems.push_back({"run '" + run.name + "'", "cannot be fitted: " + reason});
    } else {
      std::optional<PublishedSource> source;
      if (!run.key.empty()) source = read_source(run.key);
      result.skipped.push_back({label_of(run, source ? &*source : nullptr), run.name, std::move(reason)});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return result;
}

}  // namespace headroom
