#include "fuzz/readers.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "cli/question.hpp"
#include "headroom/answer/grid.hpp"
#include "headroom/answer/snapshot_use.hpp"
#include "headroom/answer/values.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/interop/hugging_face.hpp"
#include "headroom/interop/memory_snapshot_writer.hpp"
#include "headroom/interop/profile.hpp"
#include "headroom/io/measurements_file.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/part_file.hpp"
#include "headroom/io/quantity.hpp"
#include "headroom/io/recipes_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/samples_file.hpp"
#include "headroom/io/search_result.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "interop/launch_in/readers.hpp"

namespace headroom::tests {
namespace {

const char* const fuzzed_file = "fuzzed.json";

void insist(bool condition, const char* what) {
  if (!condition) throw std::logic_error(what);
}

template <class Read>
void with_answer(Read read) {
  try {
    read();
  } catch (const InputError& error) {
    insist(!error.problems().empty(), "an InputError without a problem");
  }
}

std::vector<std::string> lines_of(std::string_view text) { return split(text, '\n'); }

void fuzz_model(std::string_view text) {
  with_answer([&] {
    const Transformer model = parse_model(text, fuzzed_file);
    insist(parse_model(write_model(model), fuzzed_file) == model, "a model that is not what was written");
  });
}

void fuzz_system(std::string_view text) {
  with_answer([&] {
    const System system = parse_system(text, fuzzed_file);
    insist(parse_system(write_system(system), fuzzed_file) == system,
           "a system that is not what was written");
  });
}

void fuzz_software(std::string_view text) {
  with_answer([&] {
    const Software software = parse_software(text, fuzzed_file);
    insist(parse_software(write_software(software), fuzzed_file) == software,
           "a stack that is not what was written");
  });
}

void fuzz_releases(std::string_view text) {
  with_answer([&] {
    const StackFamily family = parse_releases(text, fuzzed_file);
    insist(parse_releases(write_releases(family), fuzzed_file) == family,
           "releases that are not what was written");
  });
}

void fuzz_recipes(std::string_view text) {
  with_answer([&] { parse_recipes(text, fuzzed_file); });
}

void fuzz_source(std::string_view text) {
  with_answer([&] {
    const PublishedSource source = parse_source(text, fuzzed_file);
    insist(parse_source(write_source(source), fuzzed_file).settings == source.settings,
           "settings that are not what was written");
  });
}

void fuzz_spreads(std::string_view text) {
  with_answer([&] { parse_spreads(text, fuzzed_file); });
}

void fuzz_measurements(std::string_view text) {
  with_answer([&] { parse_measurements(text, fuzzed_file); });
}

void fuzz_runs(std::string_view text) {
  with_answer([&] {
    std::vector<MeasuredRun> runs = parse_runs(text, fuzzed_file);
    cases_of(runs, std::nullopt, std::nullopt);
    take_keys_by_title(runs);
  });
}

void fuzz_profile(std::string_view text) {
  with_answer([&] {
    const Profile profile = parse_profile(text, fuzzed_file, 8);
    for (const Sample& sample : profile.samples.samples)
      insist(sample.median > Seconds(0), "a time of nothing");
  });
}

void fuzz_snapshot(std::string_view text) {
  with_answer([&] {
    const MemorySnapshot snapshot = parse_snapshot(text, "fuzzed.pickle");
    std::string written;
    write_snapshot(snapshot, [&](const std::string& part) { written += part; });
    const MemorySnapshot again = parse_snapshot(written, "fuzzed.pickle");
    insist(again.segments == snapshot.segments && again.traces == snapshot.traces,
           "segments or traces that are not what was written");
    const SnapshotUse use = snapshot_use(again, "fuzzed.pickle");
    Bytes groups;
    for (const BlockGroup& group : use.groups) groups += total(group);
    insist(groups == use.peak, "groups that do not add up to the peak");
  });
}

void fuzz_samples(std::string_view text) {
  with_answer([&] { parse_samples(text, "fuzzed.txt"); });
}

// What is read from a file: here one in memory.
template <class Read>
void from_file(std::string_view text, Read read) {
  const int file = memfd_create("part", 0);
  insist(file >= 0, "no file in memory to be had");
  const auto written = write(file, text.data(), text.size());
  read("/proc/self/fd/" + std::to_string(file));
  close(file);
  insist(written == static_cast<ssize_t>(text.size()), "a file in memory that was not written");
}

void fuzz_part(std::string_view text) {
  from_file(text, [](const std::string& path) {
    with_answer([&] {
      PartReader rows(path);
      while (rows.next_row()) {
      }
    });
    with_answer([&] {
      PartReader part(path);
      read_result(part, Strategy{});
    });
  });
}

// A config.json of the Hugging Face hub.
void fuzz_hub(std::string_view text) {
  from_file(text, [](const std::string& path) {
    with_answer([&] {
      const Transformer model = import_model(path).model;
      Transformer again = parse_model(write_model(model), fuzzed_file);
      again.name = model.name;
      insist(again == model, "a model that is not what was written");
    });
  });
}

// A run in a configuration of the syntax that a name's end tells; Python by its first function.
void fuzz_run(std::string_view text, const std::string& file) {
  with_answer([&] {
    const LaunchedRun run = read_tree_file(text, file, {});
    insist(!run.framework.empty(), "a run of no framework");
  });
}
void fuzz_run_yaml(std::string_view text) { fuzz_run(text, "fuzzed.yaml"); }
void fuzz_run_toml(std::string_view text) { fuzz_run(text, "fuzzed.toml"); }
void fuzz_run_json(std::string_view text) { fuzz_run(text, "fuzzed.json"); }
void fuzz_run_python(std::string_view text) {
  with_answer([&] { read_python_config(text, "fuzzed.py", "", {}); });
}

// The first line is the arguments of the script.
void fuzz_script(std::string_view text) {
  LaunchOptions options;
  const std::size_t end = std::min(text.find('\n'), text.size());
  if (text.starts_with("#args")) options.arguments = split(text.substr(0, end), ' ');
  with_answer([&] { read_launch_script(text, "fuzzed.sh", options); });
}

void fuzz_values(std::string_view text) {
  with_answer([&] { insist(!values_of("--vary", text).empty(), "a list without values"); });
}

// A line with an equals sign is of --vary, another of --zip.
void fuzz_grid(std::string_view text) {
  std::vector<std::string> varied;
  std::vector<std::string> zipped;
  for (std::string& line : lines_of(text)) {
    (line.find('=') == std::string::npos ? zipped : varied).push_back(std::move(line));
  }
  with_answer([&] {
    const Grid grid = read_grid(varied, zipped);
    const std::int64_t points = point_count(grid);
    insist(points <= most_points, "more points than a grid may have");
    if (points == 0) return;
    insist(point_of(grid, 0).size() == fields_of(grid).size(), "a point without a value for each field");
    point_of(grid, points - 1);
  });
}

template <class Q>
void fuzz_parsed(const Parsed<Q>& parsed, Parsed<Q> (*parse)(std::string_view)) {
  if (const auto* value = std::get_if<Q>(&parsed))
    insist(parse(to_text(*value)) == parsed, "a quantity that is not what was written");
}

void fuzz_quantity(std::string_view text) {
  fuzz_parsed(parse_bytes(text), parse_bytes);
  const Parsed<Bytes> of_device = parse_device_memory(text);
  if (const auto* value = std::get_if<Bytes>(&of_device))
    insist(parse_device_memory(to_text(*value, DeviceMemory{})) == of_device,
           "a memory that is not what was written");
  fuzz_parsed(parse_seconds(text), parse_seconds);
  fuzz_parsed(parse_bytes_per_second(text), parse_bytes_per_second);
  fuzz_parsed(parse_flops_per_second(text), parse_flops_per_second);
}

// Flags of a strategy, a line each: "recompute=full". One that is read says a text that makes the same value again.
void fuzz_fields(std::string_view text) {
  Strategy strategy;
  Workload workload;
  for (const std::string& line : lines_of(text)) {
    const std::size_t equals = std::min(line.find('='), line.size());
    const StrategyField* const field = find_field(line.substr(0, equals));
    if (field == nullptr || equals == line.size()) continue;
    const Edit edit{std::string(field->name), line.substr(equals + 1)};
    if (!apply(edit, strategy, workload).empty()) continue;
    const std::string said = value_of(*field, strategy, workload);
    Strategy again = strategy;
    Workload workload_again = workload;
    insist(set_value(*field, said, again, workload_again).empty(), "a value that is not read as it is said");
    insist(again == strategy && workload_again == workload, "another value than was said");
  }
  // Each field that is not as it is by default, as suggestions and commands tell it.
  flags_of(edits_of(strategy));
}

// What other flags are given: counts, amounts, and numbers with units.
void fuzz_amounts(std::string_view text) {
  std::int64_t count = 0;
  if (read_count(text, count).empty()) insist(count >= 1 && count <= most_count, "a count out of bounds");
  double amount = 0;
  if (read_amount(text, amount).empty()) insist(amount >= 1 && amount <= 1e18, "an amount out of bounds");
  constexpr Unit units[] = {{"", 1}, {"s", 1}, {"d", 86400}, {"kW", 1e3}};
  double quantity = 0;
  if (read_with_unit(text, units, "30d", quantity).empty()) insist(quantity > 0, "a quantity of nothing");
}

void fuzz_overrides(std::string_view text) {
  const std::vector<std::string> overrides = lines_of(text);
  with_answer([&] { read_model("gpt3-175b", overrides); });
  with_answer([&] { read_system("dgx-a100-80g", overrides); });
  with_answer([&] { read_software("megatron-2022", overrides); });
}

// What other programs ask, as a command line.
void fuzz_question(std::string_view text) {
  with_answer([&] { insist(!cli::read_question(text).arguments.empty(), "a question without a command"); });
}

constexpr std::array readers{
    FuzzedReader{"model", fuzz_model},         FuzzedReader{"system", fuzz_system},
    FuzzedReader{"software", fuzz_software},   FuzzedReader{"source", fuzz_source},
    FuzzedReader{"spreads", fuzz_spreads},     FuzzedReader{"measurements", fuzz_measurements},
    FuzzedReader{"runs", fuzz_runs},           FuzzedReader{"samples", fuzz_samples},
    FuzzedReader{"part", fuzz_part},           FuzzedReader{"values", fuzz_values},
    FuzzedReader{"grid", fuzz_grid},           FuzzedReader{"quantity", fuzz_quantity},
    FuzzedReader{"overrides", fuzz_overrides}, FuzzedReader{"fields", fuzz_fields},
    FuzzedReader{"amounts", fuzz_amounts},     FuzzedReader{"profile", fuzz_profile},
    FuzzedReader{"snapshot", fuzz_snapshot},   FuzzedReader{"hub", fuzz_hub},
    FuzzedReader{"run_yaml", fuzz_run_yaml},   FuzzedReader{"run_toml", fuzz_run_toml},
    FuzzedReader{"run_json", fuzz_run_json},   FuzzedReader{"run_python", fuzz_run_python},
    FuzzedReader{"script", fuzz_script},       FuzzedReader{"releases", fuzz_releases},
    FuzzedReader{"recipes", fuzz_recipes},     FuzzedReader{"question", fuzz_question},
};

}  // namespace

std::span<const FuzzedReader> fuzzed_readers() { return readers; }

}  // namespace headroom::tests
