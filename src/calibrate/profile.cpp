#include "headroom/calibrate/profile.hpp"

#include <fmt/format.h>

namespace headroom {

std::optional<Problem> problem_of(const Profile& profile) {
  if (!profile.samples.samples.empty()) return std::nullopt;
  std::string rule = "holds no kernel that a rate is fitted to";
  bool shapes = true;
  for (const ProfilePart& part : profile.parts) {
    rule += fmt::format("; {} {} {}", part.kernels, part.work, part.problem);
    shapes = shapes && part.problem != shapes_not_recorded;
  }
  if (!shapes) rule += ". Profile with record_shapes=True";
  return Problem{profile.samples.file, rule};
}

}  // namespace headroom
