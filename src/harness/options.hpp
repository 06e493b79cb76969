// The command line of headroom-measure, and what it says without measuring.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "designed.hpp"
#include "rendezvous.hpp"

namespace headroom::harness {

struct Options {
  std::string file;
  bool kernels = true;
  bool products = true;
  bool collectives = true;
  std::vector<HalfFormat> formats{HalfFormat::bf16, HalfFormat::fp16};
  int gpus = 0;  // of this process; 0: all that it sees
  Rendezvous rendezvous;
  bool dry_run = false;
  bool list = false;
};

// Nothing where --help was asked for and given. Throws InputError.
std::optional<Options> read_options(int argc, const char* const* argv);

// What would be measured over `ranks` GPUs, on `nodes` nodes.
std::vector<Sample> planned_samples(const Options& options, std::int64_t ranks, std::int64_t nodes);

// Counts and assumed durations by kind; with --list a line for each sample before them.
std::string dry_run(const Options& options, std::int64_t ranks, std::int64_t nodes);

}  // namespace headroom::harness
