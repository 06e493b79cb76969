// --format, --columns, --color and -o: how a command's result is printed, and where it goes.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "headroom/report/table.hpp"

namespace headroom::cli {

struct OutputFlags {
  std::string format = "table";
  std::string color = "auto";
  FlagText columns;
  std::string file;
  bool verbose = false;
};

void add_style_flags(Command command, OutputFlags& flags);  // all but -o
void add_output_flags(Command command, OutputFlags& flags);
// -v, of a command whose tables only count some assumptions and warnings.
void add_verbose_flag(Command command, bool& verbose);

// On a terminal tables are as wide as it is and verdicts in colour, unless NO_COLOR is set; elsewhere the same command
// prints the same bytes. Throws InputError for what cannot be read.
Style style_of(const OutputFlags& flags);

// Text on its way to stdout, where each piece is seen at once, or to a new file that takes the name when it is whole, so
// that a failure leaves the old one. Throws InputError when it cannot be written.
class Output {
 public:
  explicit Output(const OutputFlags& flags);
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output();  // what was not finished is removed

  void write(const std::string& text);
  void finish();

 private:
  [[noreturn]] void fail(const std::string& reason) const;

  std::string name_;  // as the user wrote it; empty: stdout
  std::filesystem::path target_;
  std::filesystem::path scratch_;  // the target itself where that is a device or a pipe
  std::ofstream file_;
  bool finished_ = false;
};

// A whole text.
void write(const OutputFlags& flags, const std::string& text);

}  // namespace headroom::cli
