// What a fit does not meet: stages whose samples are not what the time model's equations describe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fit_stages.hpp"
#include "headroom/calibrate/sample_replay.hpp"
#include "headroom/core/error.hpp"

namespace headroom {

// Shapes are dealt into so many parts, each of which is held out once.
inline constexpr std::size_t parts = 3;
// Of fewer shapes a third may hold all, and what is held out of them is met by the base.
inline constexpr std::size_t few_shapes = 2 * parts;

// One of them, and the problem of its files.
struct MissedStage {
  RatesOf rates;
  std::string what;
  Problem problem;
};

// Judged by rows that were held out; of few shapes by the fit itself.
std::vector<MissedStage> missed_stages(const std::vector<Stage>& stages,
                                       const std::vector<ReplayedSample>& held_out, const Performance& fitted,
                                       const std::vector<SampleSet>& sets);

// The sets without the samples of such stages, where these come from training steps and others of so many are met; nothing where no
// stage is missed. Throws InputError with the problems of those that are missed else.
std::optional<std::vector<SampleSet>> sets_that_are_met(const std::vector<MissedStage>& missed,
                                                        std::size_t stages,
                                                        const std::vector<SampleSet>& sets);

// "a.csv and b.json": the files with samples of a stage.
std::string files_of(const Stage& stage, const std::vector<SampleSet>& sets);

}  // namespace headroom
