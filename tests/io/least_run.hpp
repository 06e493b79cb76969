// The least of a runs file, and what is wrong with one.
#pragma once

#include <string>
#include <vector>

#include "headroom/io/runs_file.hpp"

namespace headroom::tests {

// What docs/runs-files.md shows as the least of a runs file.
inline const char* const minimal = R"([
  {"id": "mine", "gpu": "A100-SXM4-80GB",
   "model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50257, "seq_len": 2048, "gated_mlp": false},
   "parallel": {"tp": 1, "pp": 2, "dp": 4},
   "batch": {"global": 64, "micro": 2},
   "recompute": "none",
   "measured": {"iteration_time_s": 1.23}}])";

inline std::string mistakes_in(const std::string& text) {
  const std::vector<Problem> problems = mistakes_of(parse_runs(text, "r.json"), "r.json");
  return problems.empty() ? "" : InputError(problems).what();
}

}  // namespace headroom::tests
