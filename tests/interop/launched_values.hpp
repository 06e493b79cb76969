// What tests ask of a run that was read, and files for it to be read from.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "headroom/interop/launched_run.hpp"

namespace headroom::tests {

// Of the strategy or the stack; empty if the file does not say it.
inline std::string value_in(const LaunchedRun& run, std::string_view field) {
  for (const auto* const list : {&run.strategy, &run.stack}) {
    for (const LaunchSetting& setting : *list) {
      if (setting.field == field) return setting.value;
    }
  }
  return "";
}

inline bool says(const LaunchedRun& run, std::string_view part) {
  return std::any_of(run.remarks.begin(), run.remarks.end(),
                     [&](const LaunchRemark& remark) { return remark.text.find(part) != std::string::npos; });
}

// A folder of files that goes away with the test.
class LaunchFolder {
 public:
  LaunchFolder()
      : folder_(std::filesystem::temp_directory_path() / ("headroom_launch." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  LaunchFolder(const LaunchFolder&) = delete;
  LaunchFolder& operator=(const LaunchFolder&) = delete;
  ~LaunchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  // Returns the path of the file, whose name may have a folder.
  std::string with(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace headroom::tests
