#include "cli/output.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cli/flags.hpp"
#include "headroom/core/error.hpp"

namespace headroom::cli {

void add_output_flags(Command command, OutputFlags& flags) {
  command.option("--format", flags.format, "FORMAT", "table, json, csv or markdown");
  command.output("-o,--output", flags.file, "Write to FILE instead of standard output");
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

Output::Output(const OutputFlags& flags) : name_(flags.file) {
  if (name_.empty()) return;
  std::error_code error;
  // A link is written through, not replaced.
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(name_, error);
  target_ = error ? std::filesystem::path(name_) : resolved;
  if (std::filesystem::is_directory(target_, error)) throw InputError(name_, "is a directory");
  // A device or a pipe takes the text itself; replacing it would be no kindness.
  scratch_ = std::filesystem::is_other(target_, error) ? target_ : unused_beside(target_);
  file_.open(scratch_, std::ios::binary | std::ios::trunc);
  if (!file_) fail(std::generic_category().message(errno));
  // Whom the old file is for stays as its owner said.
  if (std::filesystem::is_regular_file(target_, error)) {
    std::filesystem::permissions(scratch_, std::filesystem::status(target_).permissions(), error);
  }
}

Output::~Output() {
  file_.close();
  std::error_code error;
  if (!finished_ && scratch_ != target_) std::filesystem::remove(scratch_, error);
}

void Output::fail(const std::string& reason) const {
  throw InputError(name_.empty() ? "standard output" : name_, "cannot be written: " + reason);
}

void Output::write(const std::string& text) {
  if (name_.empty()) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    if (!written) fail(std::generic_category().message(errno));
  } else if (!(file_ << text)) {
    fail(std::generic_category().message(errno));
  }
}

void Output::finish() {
  if (!name_.empty()) {
    file_.close();
    if (!file_) fail(std::generic_category().message(errno));
    std::error_code error;
    if (scratch_ != target_) std::filesystem::rename(scratch_, target_, error);
    if (error) fail(error.message());
  }
  finished_ = true;
}

void write(const OutputFlags& flags, const std::string& text) {
  Output output(flags);
  output.write(text);
  output.finish();
}

}  // namespace headroom::cli
