// A profile of a training step as samples, with an account of the kernels that are not samples.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/calibrate/sample.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/units.hpp"

namespace headroom {

// Problem of kernels whose shapes record_shapes=True of the profiler would record.
inline constexpr std::string_view shapes_not_recorded = "whose shapes are not recorded";

// Some kernels of a profile, and their use as samples.
struct ProfilePart {
  std::string work;  // "matrix products"
  // Why they are not samples: "in fp32 or TF32, which no rate is fitted to"; empty if they are.
  std::string problem;
  std::size_t kernels = 0;
  Seconds time;            // of all kernels
  std::size_t shapes = 0;  // samples made of the kernels
  friend bool operator==(const ProfilePart&, const ProfilePart&) = default;
};

struct Profile {
  SampleSet samples;               // may have no samples
  std::vector<ProfilePart> parts;  // parts that became samples first, then by time
  friend bool operator==(const Profile&, const Profile&) = default;
};

// Returns the problem that a profile has no samples, with what it has instead. Returns nothing if it has
// samples.
std::optional<Problem> problem_of(const Profile& profile);

}  // namespace headroom
