#include "cli/output.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "cli/flags.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {

void add_output_flags(CLI::App& command, OutputFlags& flags) {
  command.add_option("--format", flags.format, "table, json, csv or markdown")
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("-o,--output", flags.file, "Write to FILE instead of standard output")
      ->type_name("FILE");
}

Format format_of(const OutputFlags& flags) {
  std::vector<Problem> problems;
  Format format = Format::table;
  read_choice("--format", flags.format, format, problems);
  if (!problems.empty()) throw InputError(problems);
  return format;
}

namespace {

// A name beside the target that nothing has yet, so that no file of the user's is overwritten.
std::filesystem::path unused_beside(const std::filesystem::path& target) {
  std::error_code error;
  for (int i = 0;; ++i) {
    std::filesystem::path candidate = target;
    candidate += ".partial" + std::to_string(i);
    if (!std::filesystem::exists(std::filesystem::symlink_status(candidate, error))) return candidate;
  }
}

}  // namespace

void write(const OutputFlags& flags, const std::string& text) {
  if (flags.file.empty()) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) throw InputError("standard output", std::generic_category().message(errno));
    return;
  }
  std::error_code error;
  // A link is written through, not replaced.
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(flags.file, error);
  const std::filesystem::path target = error ? std::filesystem::path(flags.file) : resolved;
  if (std::filesystem::is_directory(target, error)) throw InputError(flags.file, "is a directory");
  // A device or a pipe takes the text itself; replacing it would be no kindness.
  const bool special = std::filesystem::is_other(target, error);
  const std::filesystem::path scratch = special ? target : unused_beside(target);
  std::ofstream file(scratch, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  const int reason = errno;
  file.close();
  if (!file) {
    if (!special) std::filesystem::remove(scratch, error);
    throw InputError(flags.file, "cannot be written: " + std::generic_category().message(reason));
  }
  if (!special) std::filesystem::rename(scratch, target, error);
  if (!special && error) throw InputError(flags.file, "cannot be written: " + error.message());
}

}  // namespace headroom::cli
