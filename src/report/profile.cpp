#include "report/profile.hpp"

#include <filesystem>

#include "report/text.hpp"

namespace headroom {

std::string profile_text(const Profile& profile, const Style& style) {
  Seconds all;
  for (const ProfilePart& part : profile.parts) all += part.time;
  Table table{.columns = {{"kernels of " + std::filesystem::path(profile.samples.file).filename().string(),
                           Align::left},
                          {"count"},
                          {"time"},
                          {"share"},
                          {"shapes"},
                          {"", Align::left}}};
  for (const ProfilePart& part : profile.parts) {
    table.rows.push_back({part.work, std::to_string(part.kernels), human(part.time),
                          all > Seconds() ? percent(part.time / all) : "",
                          part.shapes > 0 ? std::to_string(part.shapes) : "", part.problem});
  }
  return render_table(table, style) + '\n';
}

OrderedJson profiles_json(const std::vector<Profile>& profiles) {
  OrderedJson list = OrderedJson::array();
  for (const Profile& profile : profiles) {
    OrderedJson parts = OrderedJson::array();
    for (const ProfilePart& part : profile.parts) {
      parts.push_back({{"work", part.work},
                       {"kernels", part.kernels},
                       {"seconds", part.time.count()},
                       {"shapes", part.shapes},
                       {"problem", part.problem}});
    }
    list.push_back(
        {{"file", profile.samples.file}, {"device", profile.samples.device}, {"parts", std::move(parts)}});
  }
  return list;
}

}  // namespace headroom
