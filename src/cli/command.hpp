// The subcommands, a file each. Each adds itself to the program and leaves its exit code in `exit_code`.
#pragma once

#include "cli/command_line.hpp"
#include "cli/exit_code.hpp"

namespace headroom::cli {

void add_plan(Command program, ExitCode& exit_code);
void add_estimate(Command program, ExitCode& exit_code);
void add_explain(Command program, ExitCode& exit_code);
void add_compare(Command program, ExitCode& exit_code);
void add_report(Command program, ExitCode& exit_code);
void add_trace(Command program, ExitCode& exit_code);
void add_sweep(Command program, ExitCode& exit_code);
void add_import(Command program, ExitCode& exit_code);
void add_merge(Command program, ExitCode& exit_code);
void add_calibrate(Command program, ExitCode& exit_code);
void add_check(Command program, ExitCode& exit_code);
void add_memory(Command program, ExitCode& exit_code);
void add_frontier(Command program, ExitCode& exit_code);
void add_list(Command program, ExitCode& exit_code);
#ifndef __EMSCRIPTEN__  // a page has neither standard input nor sockets
void add_serve(Command program, ExitCode& exit_code);
#endif
void add_schema(Command program, ExitCode& exit_code);
void add_system(Command program, ExitCode& exit_code);
void add_validate(Command program, ExitCode& exit_code);
void add_completions(Command program, ExitCode& exit_code);
void add_man(Command program, ExitCode& exit_code);

}  // namespace headroom::cli
