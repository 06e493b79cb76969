// A training run as somebody published or measured it: its configuration, as far as it is known, its
// iteration time and its memory. And the request that replays it as a prediction.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

// Absent members were not published.
struct MeasuredRun {
  std::string name;
  std::string source;  // its title; empty where the runs are the user's own
  std::string device;  // "A100-SXM4-80GB"
  std::string dtype;
  std::string overlap;  // what overlaps or is sharded how, in words
  bool dense = true;

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::optional<std::int64_t> feedforward;
  std::int64_t heads = 0;
  std::optional<std::int64_t> key_value_heads;
  std::optional<std::int64_t> vocabulary;
  std::int64_t sequence = 0;
  bool gated = false;

  std::int64_t tensor_parallel = 1;
  std::optional<bool> sequence_parallel;
  std::int64_t pipeline_parallel = 1;
  std::optional<std::int64_t> virtual_pipeline;
  std::int64_t context_parallel = 1;
  std::int64_t expert_parallel = 1;
  std::int64_t data_parallel = 1;
  std::optional<std::int64_t> zero_stage;
  bool fully_sharded = false;
  std::optional<std::string> schedule;
  std::int64_t global_batch = 1;
  std::int64_t micro_batch = 1;
  std::optional<std::string> recompute;
  std::optional<bool> flash_attention;

  bool fit = false;  // marked as one to fit efficiencies to (calibrate/fit_runs.hpp)
  std::optional<Seconds> iteration;
  std::optional<double> memory;  // in its unit
  std::string memory_unit;       // "GB" unless it says "GiB"; "allocated" unless it says "nvidia-smi"
  friend bool operator==(const MeasuredRun&, const MeasuredRun&) = default;
};

// Publications whose system and software are known, by a part of their title.
struct KnownSource {
  std::string_view title_part;
  std::string_view label;
  std::string_view system;  // names of presets
  std::string_view software;
  std::optional<double> median;  // targets for iteration times
  std::optional<double> worst;
  std::optional<double> worst_memory;
};

// Null for the user's own runs and for publications of which too little is known.
const KnownSource* known_source(const MeasuredRun& run);

std::vector<Target> targets_of(const KnownSource& source);

// What the rows of a source are called together.
std::string label_of(const MeasuredRun& run);

// The names of the presets that predict a run. A system is absent where it is neither a known source's nor,
// for the user's own runs, that of the device.
struct RunPresets {
  std::optional<std::string> system;
  std::string software;
  friend bool operator==(const RunPresets&, const RunPresets&) = default;
};
RunPresets presets_of(const MeasuredRun& run);

// The reason, where the run is not one that can be predicted.
using RunCase = std::variant<MeasuredCase, std::string>;

RunCase case_of(const MeasuredRun& run, const System& system, const Software& software);

}  // namespace headroom
