#include "cli/output.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "cli/console.hpp"
#include "cli/flags.hpp"
#include "cli/interrupt.hpp"
#include "cli/terminal.hpp"
#include "headroom/core/error.hpp"
#include "io/command_files.hpp"

namespace headroom::cli {

void add_style_flags(Command command, OutputFlags& flags) {
  command = command.in(topic::output);
  command.option("--format", flags.format, "FORMAT", "table, json, csv or markdown");
  command.option("--columns", flags.columns, "N",
                 "Width of tables and lines (default: $COLUMNS, the terminal's, or 100)");
  command.option("--color", flags.color, "WHEN", "auto, always or never: colour of verdicts");
}

void add_output_flags(Command command, OutputFlags& flags) {
  add_style_flags(command, flags);
  command.in(topic::output).output("-o,--output", flags.file, "Write to FILE instead of standard output");
}

void add_verbose_flag(Command command, bool& verbose) {
  command.in(topic::output).flag("-v,--verbose", verbose, "List all assumptions and warnings");
}

namespace {

enum class When : std::uint8_t { automatic, always, never };

}  // namespace
}  // namespace headroom::cli

template <>
inline constexpr std::array<headroom::Spelling<headroom::cli::When>, 3>
    headroom::spellings<headroom::cli::When>{{{headroom::cli::When::automatic, "auto"},
                                              {headroom::cli::When::always, "always"},
                                              {headroom::cli::When::never, "never"}}};

namespace headroom::cli {

namespace {

// By the locale of the environment, whose first variable that is set decides.
bool has_unicode() {
  for (const char* const variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = environment(variable);
    if (locale.empty()) continue;
    return locale.ends_with("UTF-8") || locale.ends_with("utf8") || locale.ends_with("utf-8");
  }
  return false;
}

}  // namespace

Style style_of(const OutputFlags& flags) {
  std::vector<Problem> problems;
  Style style;
  When when{};
  read_choice("--format", flags.format, style.format, problems);
  read_choice("--color", flags.color, when, problems);
  const bool terminal = flags.file.empty() && console().caller == nullptr && isatty(STDOUT_FILENO) != 0;
  if (flags.file.empty()) style.columns = screen_columns().value_or(style.columns);
  auto columns = static_cast<std::int64_t>(style.columns);
  read_count("--columns", flags.columns, columns, problems, least_columns);
  if (!problems.empty()) throw InputError(problems);
  style.columns = static_cast<std::size_t>(columns);
  const bool wanted = terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  style.verbose = flags.verbose;
  style.blocks = terminal && has_unicode() && environment("TERM") != "dumb";
  style.colour = when == When::always || (when == When::automatic && wanted);
  return style;
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
  expect_unread(name_);
  std::error_code error;
  // A link is written through, not replaced.
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(name_, error);
  target_ = error ? std::filesystem::path(name_) : resolved;
  if (std::filesystem::is_directory(target_, error)) throw InputError(name_, "is a directory");
  // A device or a pipe takes the text itself; replacing it would be no kindness.
  scratch_ = std::filesystem::is_other(target_, error) ? target_ : unused_beside(target_);
  if (scratch_ != target_) note_interrupts();
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
  throw InputError(name_, "cannot be written: " + reason);
}

void Output::write(const std::string& text) {
  if (name_.empty()) return print_result(text);
  if (scratch_ != target_) throw_if_interrupted();
  if (!(file_ << text)) fail(std::generic_category().message(errno));
}

void Output::finish() {
  if (!name_.empty()) {
    file_.close();
    if (!file_) fail(std::generic_category().message(errno));
    expect_unread(name_);
    if (scratch_ != target_) throw_if_interrupted();
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
