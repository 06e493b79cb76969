#include "written_files.hpp"

#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include <sys/stat.h>

#include "headroom/core/error.hpp"
#include "text.hpp"

namespace headroom {
namespace {

struct WrittenFile {
  std::string flag;
  std::string path;
  std::optional<Problem> read;  // that it was, too
};

struct WrittenFiles {
  std::mutex lock;
  std::vector<WrittenFile> files;
};

WrittenFiles& written() {
  static WrittenFiles of_command;
  return of_command;
}

// Whether two names are of one file, which need not exist yet.
bool are_same_file(const std::string& x, const std::string& y) {
  struct stat of_x {};
  struct stat of_y {};
  if (stat(x.c_str(), &of_x) != 0 || stat(y.c_str(), &of_y) != 0) {
    const auto whole = [](const std::string& path) {
      std::error_code error;
      return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    };
    return whole(x) == whole(y);
  }
  if (S_ISCHR(of_x.st_mode) || S_ISSOCK(of_x.st_mode)) return false;
  return of_x.st_dev == of_y.st_dev && of_x.st_ino == of_y.st_ino;
}

Problem overwriting(const WrittenFile& file, const std::string& path, const std::string& use) {
  return {file.flag, "would overwrite '" + printable(path, std::string::npos) + "', which is " + use +
                         ": name another file"};
}

}  // namespace

void will_write(const std::string& flag, const std::string& path) {
  const std::lock_guard<std::mutex> lock(written().lock);
  const WrittenFile added{.flag = flag, .path = path, .read = {}};
  for (const WrittenFile& other : written().files) {
    if (are_same_file(other.path, path)) throw InputError({overwriting(added, path, "for " + other.flag)});
  }
  written().files.push_back(added);
}

void will_read(const std::string& path) {
  const std::lock_guard<std::mutex> lock(written().lock);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  for (WrittenFile& file : written().files) {
    if (!are_same_file(file.path, path)) continue;
    file.read = overwriting(file, path, "read");
    throw InputError({*file.read});
  }
}

void expect_unread(const std::string& path) {
  const std::lock_guard<std::mutex> lock(written().lock);
  for (const WrittenFile& file : written().files) {
    if (file.path == path && file.read) throw InputError({*file.read});
  }
}

}  // namespace headroom
