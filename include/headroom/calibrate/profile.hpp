// A profile of a training step as samples, and an account of the kernels that are none.
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

// A problem of kernels that record_shapes=True of the profiler mends.
inline constexpr std::string_view shapes_not_recorded = "whose shapes are not recorded";

// Some kernels of a profile and what became of them.
struct ProfilePart {
  std::string work;  // "matrix products"
  std::string
      problem;  // why they are no samples: "in fp32 or TF32, which no rate is fitted to"; empty where they are
  std::size_t kernels = 0;
  Seconds time;            // of all of them
  std::size_t shapes = 0;  // samples that they make
  friend bool operator==(const ProfilePart&, const ProfilePart&) = default;
};

struct Profile {
  SampleSet samples;               // may hold none
  std::vector<ProfilePart> parts;  // those that are samples first, then by time
  friend bool operator==(const Profile&, const Profile&) = default;
};

// That it holds no samples, with what it holds instead; nothing where it has some.
std::optional<Problem> problem_of(const Profile& profile);

}  // namespace headroom
