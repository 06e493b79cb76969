// What became of the kernels of a profile: part of the report of `headroom calibrate`.
#pragma once

#include <string>
#include <vector>

#include "headroom/calibrate/profile.hpp"
#include "headroom/report/table.hpp"
#include "report/json.hpp"

namespace headroom {

std::string profile_text(const Profile& profile, const Style& style);
OrderedJson profiles_json(const std::vector<Profile>& profiles);

}  // namespace headroom
