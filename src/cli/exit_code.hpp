// Exit codes of the program.
#pragma once

namespace headroom::cli {

enum class ExitCode : int {
  done = 0,              // and it fits
  internal = 1,          // our bug
  bad_input = 2,         // bad input or usage
  infeasible = 3,        // does not fit, or nothing feasible
  out_of_tolerance = 4,  // predictions are further from measurements than their targets allow
};

}  // namespace headroom::cli
