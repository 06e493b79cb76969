// The files of one command: what it reads, from the disk or from texts that came with its question, and what it writes.
// A program has one command, whose files are on disk. A process that answers many at once has files for each.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headroom/core/error.hpp"

namespace headroom {

enum class FileKind : std::uint8_t { none, regular, folder, other };

class CommandFiles {
 public:
  // `given`: texts by name, which stand in front of the disk's files. Without `disk` there are no others.
  explicit CommandFiles(const std::map<std::string, std::string>& given = {}, bool disk = true);
  // The files of `outer`, with texts that stand in front of them. Keeps a reference to `outer`.
  CommandFiles(CommandFiles& outer, const std::map<std::string, std::string>& given);

  [[nodiscard]] bool has_disk() const { return disk_; }
  [[nodiscard]] const std::string* given(const std::string& path) const;  // null: none of this name

  // The text of what can be read only once, such as a pipe: it is kept for whoever asks for it again.
  std::string once(const std::string& path, const std::function<std::string()>& read);

  // The functions below are these, of the thread's command.
  void will_write(const std::string& flag, const std::string& path);
  void will_read(const std::string& path);
  void expect_unread(const std::string& path);

 private:
  struct Written {
    std::string flag;
    std::string path;
    std::optional<Problem> read;  // that it was, too
  };
  std::map<std::string, std::string> given_;
  bool disk_;
  CommandFiles* outer_ = nullptr;
  std::mutex lock_;
  std::vector<Written> written_;
  std::mutex reading_;
  std::map<std::string, std::string> once_;
};

// Returns the files of the command that this thread works for: those of the innermost Current<CommandFiles>, or the program's.
CommandFiles& command_files();

// Returns the kind of the file with this name.
FileKind kind_of_file(const std::string& path);
inline bool is_regular_file(const std::string& path) { return kind_of_file(path) == FileKind::regular; }

// Opens a file for reading; null where that fails, with errno. Calls will_read().
using OpenFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
OpenFile open_file(const std::string& path);

// Notes that a flag's file will be written, before anything is read, so that no file is read or written twice by a command:
// what was there would be lost. Throws InputError where another flag names the same file, and where there is no disk.
void will_write(const std::string& flag, const std::string& path);

// To be called before a file is opened for reading. Throws InputError where it is one that will be written, by whatever
// name: a link, or the folder that it was found in. What is no file, such as a terminal, may be both. Throws it also where the
// command has no such file and no disk.
void will_read(const std::string& path);

// Throws once more what will_read() threw about a file to be written, in case that whoever read it went on.
void expect_unread(const std::string& path);

}  // namespace headroom
