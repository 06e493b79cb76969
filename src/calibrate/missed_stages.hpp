// Stages that a fit misses: their samples do not follow the time model's equations.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fit_stages.hpp"
#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/core/error.hpp"

namespace headroom {

// Number of parts that shapes are divided into; each is held out once.
inline constexpr std::size_t parts = 3;
// With fewer shapes, one part may hold all of them, and the base then predicts what is held out.
inline constexpr std::size_t few_shapes = 2 * parts;

// A stage that the fit misses, and the problem of its files.
struct MissedStage {
  RatesOf rates;
  std::string what;
  Problem problem;
};

// Returns the missed stages, judged by held-out rows, or by the fit itself if there are few shapes.
std::vector<MissedStage> missed_stages(const std::vector<Stage>& stages,
                                       const std::vector<ReplayedSample>& held_out, const Performance& fitted,
                                       const std::vector<SampleSet>& sets);

// Returns the sets without the samples of missed stages, if these come from training steps and others of the
// `stages` are met. Returns nothing if no stage is missed. Throws InputError with the problems of missed
// stages otherwise.
std::optional<std::vector<SampleSet>> sets_that_are_met(const std::vector<MissedStage>& missed,
                                                        std::size_t stages,
                                                        const std::vector<SampleSet>& sets);

// Returns the files with samples of a stage: "a.csv and b.json".
std::string files_of(const Stage& stage, const std::vector<SampleSet>& sets);

}  // namespace headroom
