// Question of `headroom estimate` in words, and its answer in a few numbers. A program that includes this header alone
// compiles in a second. answer/estimate.hpp has the whole answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "headroom/core/units.hpp"

namespace headroom {

struct BriefQuestion {
  std::string model;  // name of an embedded model, or a model file
  // Flags of strategy and workload, separated by single spaces: "-t 8 -p 8 --sp --global-batch 64".
  // `headroom list fields` names all.
  std::string flags{};
  std::string system = "dgx-a100-80g";  // name of an embedded system, or a system file
  std::string software{};  // name of an embedded training stack, or its file; empty: the system's
};

struct BriefReply {
  bool fits = false;
  std::string verdict;                   // "fits", "marginal" or "does_not_fit", as in JSON
  std::int64_t devices = 0;              // number of GPUs
  Bytes peak;                            // of the pipeline rank that needs the most
  Bytes capacity;                        // of a GPU
  std::size_t peak_rank = 0;             // pipeline rank
  std::optional<Seconds> iteration;      // this and the rest: absent if the system has no performance figures
  std::optional<Seconds> iteration_low;  // 80% of measured times lie from here
  std::optional<Seconds> iteration_high;  // to here
  std::optional<double> tokens_per_second;
  std::optional<double> mfu;  // counts attention under a causal mask
};

// Evaluates the strategy, with the defaults of `headroom estimate` for what no flag says. Throws InputError
// (core/error.hpp) if a name, a file or a flag is wrong, and with every broken rule if the strategy is not
// legal.
BriefReply answer(const BriefQuestion& question);

}  // namespace headroom
