#include "command_files.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "core/current.hpp"
#include "text.hpp"

namespace headroom {
namespace {

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

Problem overwriting(const std::string& flag, const std::string& path, const std::string& use) {
  return {flag, "would overwrite '" + printable(path, std::string::npos) + "', which is " + use +
                    ": name another file"};
}

std::string in_one_spelling(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

}  // namespace

CommandFiles::CommandFiles(const std::map<std::string, std::string>& given, bool disk) : disk_(disk) {
  for (const auto& [name, text] : given) given_.emplace(in_one_spelling(name), text);
}

CommandFiles::CommandFiles(CommandFiles& outer, const std::map<std::string, std::string>& given)
    : CommandFiles(given, outer.disk_) {
  outer_ = &outer;
}

const std::string* CommandFiles::given(const std::string& path) const {
  const auto found = given_.empty() ? given_.end() : given_.find(in_one_spelling(path));
  if (found != given_.end()) return &found->second;
  return outer_ == nullptr ? nullptr : outer_->given(path);
}

std::string CommandFiles::once(const std::string& path, const std::function<std::string()>& read) {
  if (outer_ != nullptr) return outer_->once(path, read);
  const std::lock_guard lock(reading_);
  const auto known = once_.find(path);
  return known != once_.end() ? known->second : once_.emplace(path, read()).first->second;
}

void CommandFiles::will_write(const std::string& flag, const std::string& path) {
  if (outer_ != nullptr) return outer_->will_write(flag, path);
  if (!disk_) throw InputError(flag, "cannot be written here: the reply holds the text");
  const std::lock_guard lock(lock_);
  for (const Written& other : written_) {
    if (are_same_file(other.path, path)) throw InputError({overwriting(flag, path, "for " + other.flag)});
  }
  written_.push_back({.flag = flag, .path = path, .read = {}});
}

void CommandFiles::will_read(const std::string& path) {
  if (given(path) != nullptr) return;
  if (outer_ != nullptr) return outer_->will_read(path);
  if (!disk_) throw InputError(path, "is not a file of the question: give its text under `files`");
  const std::lock_guard lock(lock_);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  for (Written& file : written_) {
    if (!are_same_file(file.path, path)) continue;
    file.read = overwriting(file.flag, path, "read");
    throw InputError({*file.read});
  }
}

void CommandFiles::expect_unread(const std::string& path) {
  if (outer_ != nullptr) return outer_->expect_unread(path);
  const std::lock_guard lock(lock_);
  for (const Written& file : written_) {
    if (file.path == path && file.read) throw InputError({*file.read});
  }
}

CommandFiles& command_files() {
  static CommandFiles of_program;
  return Current<CommandFiles>::or_else(of_program);
}

FileKind kind_of_file(const std::string& path) {
  const CommandFiles& files = command_files();
  if (files.given(path) != nullptr) return FileKind::regular;
  std::error_code error;
  const auto status =
      files.has_disk() ? std::filesystem::status(path, error) : std::filesystem::file_status();
  if (!std::filesystem::exists(status)) return FileKind::none;
  if (std::filesystem::is_directory(status)) return FileKind::folder;
  return std::filesystem::is_regular_file(status) ? FileKind::regular : FileKind::other;
}

OpenFile open_file(const std::string& path) {
  will_read(path);
  const std::string* const text = command_files().given(path);
  if (text == nullptr) return {std::fopen(path.c_str(), "rb"), std::fclose};
  // It is only read. An empty text opens as no stream everywhere: an empty file stands for it.
  if (text->empty()) return {std::tmpfile(), std::fclose};
  return {fmemopen(const_cast<char*>(text->data()), text->size(), "rb"), std::fclose};
}

void will_write(const std::string& flag, const std::string& path) { command_files().will_write(flag, path); }

void will_read(const std::string& path) { command_files().will_read(path); }

void expect_unread(const std::string& path) { command_files().expect_unread(path); }

}  // namespace headroom
