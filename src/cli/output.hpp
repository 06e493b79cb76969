// --format and -o: where a command's result goes.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "headroom/report/table.hpp"

namespace headroom::cli {

struct OutputFlags {
  std::string format = "table";
  std::string file;
};

void add_output_flags(CLI::App& command, OutputFlags& flags);

// Throws InputError when it is not a format.
Format format_of(const OutputFlags& flags);

// Writes to stdout, or whole to a new file that then takes the name, so that a failure leaves the old one. Throws
// InputError when it cannot.
void write(const OutputFlags& flags, const std::string& text);

}  // namespace headroom::cli
