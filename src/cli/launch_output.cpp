#include "cli/launch_output.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "headroom/core/joined.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {
namespace {

std::vector<std::string> launchers() {
  std::vector<std::string> names;
  names.reserve(spellings<LaunchTarget>.size());
  for (const auto& [target, name] : spellings<LaunchTarget>) names.emplace_back(name);
  return names;
}

}  // namespace

void add_launch_output(Command command, LaunchOutput& options, const std::string& help) {
  command = command.in(topic::output);
  command.flag("--launch", options.launch, "LAUNCHER", launchers(),
               help + ". LAUNCHER is the stack's own, or another that runs it: " +
                   headroom::joined(launchers(), ", "));
  command.option("--launch-dir", options.folder, "DIR",
                 "Write the files of --launch to DIR, and overwrite none");
}

std::optional<LaunchTarget> read_target(const LaunchOutput& options, std::span<const Software* const> stacks,
                                        const Style& style, std::vector<Problem>& problems) {
  if (!is_asked(options)) return std::nullopt;
  if (style.format == Format::csv)
    problems.push_back({"--launch", "is not available with --format csv: use table, markdown or json"});
  std::optional<LaunchTarget> target;
  if (!options.launch.empty() && options.launch != "true") {
    target.emplace();
    const std::size_t before = problems.size();
    read_choice("--launch", options.launch, *target, problems);
    if (problems.size() > before) return std::nullopt;
  }
  // A stack that is not known leaves the default here, whose launcher nobody asked for.
  if (std::any_of(problems.begin(), problems.end(),
                  [](const Problem& problem) { return problem.where != "--launch"; }))
    return target;
  for (const Software* const software : stacks) {
    if (!target && !software->launcher) {
      problems.push_back({"--launch", "the stack " + software->name + " has no known launcher"});
    } else if (const std::string rule = target ? target_rule(*target, *software) : ""; !rule.empty()) {
      problems.push_back({"--launch", rule});
    }
  }
  return target;
}

namespace {

namespace fs = std::filesystem;

std::optional<std::string> text_in(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error))) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Removes what was written, unless all of it was.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  ~NewFiles() {
    std::error_code error;
    if (kept_) return;
    for (const fs::path& path : paths_) fs::remove(path, error);
  }
  void write(const fs::path& path, const std::string& text) {
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    paths_.push_back(path);
    std::ofstream file(path, std::ios::binary);
    if (!(file << text) || !file.flush()) throw InputError(path.string(), "cannot be written");
  }
  void keep() { kept_ = true; }

 private:
  std::vector<fs::path> paths_;
  bool kept_ = false;
};

}  // namespace

void write_launch(const LaunchOutput& options, const std::optional<Launch>& launch,
                  const std::string& report) {
  if (options.folder.empty() || !launch) return;
  if (!command_files().has_disk()) throw InputError("--launch-dir", "cannot be written here: use --launch");
  const fs::path folder(options.folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error))
    throw InputError(options.folder, "is not a folder and cannot be created");
  std::vector<Problem> problems;
  std::vector<const LaunchFile*> missing;
  for (const LaunchFile& file : launch->files) {
    if (!report.empty() &&
        fs::weakly_canonical(folder / file.name, error) == fs::weakly_canonical(report, error))
      throw InputError("-o", "must not be a file of the launch");
    const std::optional<std::string> old = text_in(folder / file.name);
    if (!old) {
      missing.push_back(&file);
    } else if (*old != file.text) {
      problems.push_back(
          {(folder / file.name).string(), "exists with different content: choose another --launch-dir"});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  NewFiles files;
  for (const LaunchFile* const file : missing) files.write(folder / file->name, file->text);
  files.keep();
  std::string names;
  for (const LaunchFile& file : launch->files) names += " " + file.name;
  say(options.folder + " has" + names + "; run in that folder: " + launch->command);
  for (const std::string& lack : launch->lacks) say(options.folder + ": cannot be launched: " + lack);
}

}  // namespace headroom::cli
