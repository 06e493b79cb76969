#include "interop/launch_in/flags.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "interop/launch_in/tree_run.hpp"

namespace headroom {

const Written* flag_of(const std::vector<Written>& written, std::string_view name) {
  const auto found =
      std::find_if(written.rbegin(), written.rend(), [&](const Written& it) { return it.name == name; });
  return found == written.rend() ? nullptr : &*found;
}

Written* flag_of(std::vector<Written>& written, std::string_view name) {
  return const_cast<Written*>(flag_of(std::as_const(written), name));
}

bool has_flag(const std::vector<Written>& written, std::string_view name) {
  return flag_of(written, name) != nullptr;
}

std::optional<std::int64_t> count_in_flag(const std::vector<Written>& written, std::string_view name) {
  const Written* const setting = flag_of(written, name);
  return setting == nullptr || !setting->unknown.empty() ? std::nullopt
                                                         : whole_count(text_of_values(*setting));
}

void rename(std::vector<Written>& written, std::initializer_list<std::array<std::string_view, 2>> names) {
  for (Written& setting : written) {
    for (const auto& [theirs, ours] : names) {
      if (setting.name == theirs) setting.name = std::string(ours);
    }
  }
}

}  // namespace headroom
