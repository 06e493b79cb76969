// Files that tests read back.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace headroom {

// A file that lasts as long as the test.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name, const std::string& text = {})
      : path_(std::filesystem::temp_directory_path() /
              ("headroom-" + std::to_string(getpid()) + "-" + name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom
