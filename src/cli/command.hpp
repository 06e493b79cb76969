// The subcommands, a file each. Each adds itself to the program and leaves its exit code in `exit_code`.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/exit_code.hpp"

namespace headroom::cli {

void add_plan(CLI::App& program, ExitCode& exit_code);
void add_estimate(CLI::App& program, ExitCode& exit_code);
void add_explain(CLI::App& program, ExitCode& exit_code);
void add_compare(CLI::App& program, ExitCode& exit_code);
void add_trace(CLI::App& program, ExitCode& exit_code);
void add_sweep(CLI::App& program, ExitCode& exit_code);
void add_merge(CLI::App& program, ExitCode& exit_code);
void add_calibrate(CLI::App& program, ExitCode& exit_code);
void add_check(CLI::App& program, ExitCode& exit_code);
void add_frontier(CLI::App& program, ExitCode& exit_code);
void add_list(CLI::App& program, ExitCode& exit_code);
void add_validate(CLI::App& program, ExitCode& exit_code);

}  // namespace headroom::cli
