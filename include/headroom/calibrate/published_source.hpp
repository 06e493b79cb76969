// A publication whose runs can be predicted: the system and the training stack that they ran on, what their rows leave
// unsaid, and the targets that predictions of them are held to.
//
// A run says which publication it is of by its key (`source.key` of a runs file). Nothing is concluded from a title:
// a run without a key is predicted with the defaults and held to no target.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/calibrate/comparison.hpp"

namespace headroom {

// What members of a run do not say. An absent one leaves it at the default.
struct RunSettings {
  // These hold where the run states none of its own.
  std::optional<std::int64_t> vocabulary;
  std::optional<RecomputePolicy> recompute;
  std::optional<std::string> memory_unit;  // as MeasuredRun has it

  std::optional<Dtype> gradient_dtype;
  std::optional<Positions> positions;
  std::optional<bool> tied_embeddings;
  std::optional<bool> ends_count_as_layers;  // the first and the last virtual stage hold one layer less
  // As a training stack has them.
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

// The settings of those rows whose text is this one, letter for letter. An absent text matches every row.
struct SettingsVariant {
  std::optional<std::string> dtype;
  std::optional<std::string> overlap;
  RunSettings settings;
  friend bool operator==(const SettingsVariant&, const SettingsVariant&) = default;
};

struct SourceTarget {
  Measure measure{};
  std::optional<double> median;  // parts of one
  std::optional<double> worst;
  friend bool operator==(const SourceTarget&, const SourceTarget&) = default;
};

struct PublishedSource {
  std::string key;                    // "sc21"
  std::string label;                  // what its rows are called together: "SC21"
  std::string source;                 // the citation, and what the settings rest on
  std::vector<std::string> titles;    // whole titles under which collections of runs list it
  std::optional<std::string> system;  // name of a preset; absent: that of each run's device
  std::string software;               // likewise a name
  RunSettings settings;
  std::vector<SettingsVariant> variants;  // laid over the settings, in this order
  std::vector<SourceTarget> targets;
  friend bool operator==(const PublishedSource&, const PublishedSource&) = default;
};

std::vector<Target> targets_of(const PublishedSource& source);

// What `above` gives, and else what `below` does.
RunSettings laid_over(const RunSettings& above, const RunSettings& below);

// The stack with those choices that settings have of it.
Software with_settings(Software software, const RunSettings& settings);

}  // namespace headroom
