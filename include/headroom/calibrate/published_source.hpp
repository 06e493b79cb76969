// A publication whose runs can be predicted: the system and training stack of the runs, settings that the
// rows do not state, and targets for the predictions.
//
// The key of a run (`source.key` of a runs file) names its publication. Titles are not interpreted. A run
// without a key is predicted with the defaults and has no target.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

// Settings that the members of a run do not state. An absent setting leaves the default.
struct RunSettings {
  // Used if the run states none of its own.
  std::optional<std::int64_t> vocabulary;
  std::optional<RecomputePolicy> recompute;
  std::optional<std::string> memory_unit;  // as in MeasuredRun

  std::optional<Dtype> gradient_dtype;
  std::optional<Positions> positions;
  std::optional<bool> tied_embeddings;
  std::optional<bool> ends_count_as_layers;  // the first and the last virtual stage have one layer less
  // Override the training stack's.
  std::optional<TensorOverlap> overlap_tensor_parallel;
  std::optional<bool> overlap_grad_reduce;
  std::optional<bool> overlap_param_gather;
  std::optional<bool> overlap_p2p;
  std::optional<bool> delay_weight_gradients;
  std::optional<bool> overlap_shared_experts;
  std::optional<Launches> launches;
  std::optional<Fusion> clamp_kernel;
  std::optional<Fusion> expert_bias_kernel;
  friend bool operator==(const RunSettings&, const RunSettings&) = default;
};

// Settings of the rows whose texts equal these exactly. An absent text matches every row.
struct SettingsVariant {
  std::optional<std::string> dtype;
  std::optional<std::string> overlap;
  RunSettings settings;
  friend bool operator==(const SettingsVariant&, const SettingsVariant&) = default;
};

struct SourceTarget {
  Measure measure{};
  std::optional<double> median;  // fraction of one
  std::optional<double> worst;
  friend bool operator==(const SourceTarget&, const SourceTarget&) = default;
};

struct PublishedSource {
  std::string key;                    // "sc21"
  std::string label;                  // what its rows are called together: "SC21"
  std::string source;                 // the citation, and the basis of the settings
  std::vector<std::string> titles;    // full titles that collections of runs use for it
  std::optional<std::string> system;  // name of a preset; absent: the system of each run's GPU
  std::string software;               // name of a training stack
  RunSettings settings;
  std::vector<SettingsVariant> variants;  // override the settings, in this order
  std::vector<SourceTarget> targets;
  friend bool operator==(const PublishedSource&, const PublishedSource&) = default;
};

std::vector<Target> targets_of(const PublishedSource& source);

// Returns the settings of `above`, and those of `below` where `above` has none.
RunSettings laid_over(const RunSettings& above, const RunSettings& below);

// Returns the stack with the settings applied.
Software with_settings(Software software, const RunSettings& settings);

}  // namespace headroom
