// A config.json on disk for a test, and what is read from it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include "headroom/core/error.hpp"
#include "headroom/interop/hugging_face.hpp"

namespace headroom::tests {

// A folder with a config.json, named as the model.
class HubFolder {
 public:
  explicit HubFolder(const std::string& config)
      : folder_(std::filesystem::temp_directory_path() / ("headroom_hub_test." + std::to_string(getpid())) /
                "Some-Model-8B") {
    std::filesystem::create_directories(folder_);
    std::ofstream(file()) << config;
  }
  HubFolder(const HubFolder&) = delete;
  HubFolder& operator=(const HubFolder&) = delete;
  ~HubFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_.parent_path(), ignored);
  }
  [[nodiscard]] std::string file() const { return (folder_ / "config.json").string(); }
  [[nodiscard]] std::string folder() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

inline ImportedModel imported(const std::string& config) { return import_model(HubFolder(config).file()); }

inline std::string problems_of(const std::string& config) {
  try {
    imported(config);
  } catch (const InputError& error) {
    std::string text;
    for (const Problem& problem : error.problems()) text += problem.where + ": " + problem.rule + "\n";
    return text;
  }
  return "";
}

}  // namespace headroom::tests
