// The program: runs one subcommand, and turns failures into messages and exit codes.
#include <cstdio>
#include <exception>

#include "cli/program.hpp"

int main(int argc, char** argv) {
  try {
    return static_cast<int>(headroom::cli::run(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headroom: internal error: %s\n", error.what());
    return static_cast<int>(headroom::cli::ExitCode::internal);
  }
}
