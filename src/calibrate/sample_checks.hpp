// Checks that samples can come from a GPU, and that they determine the rates of their kind.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "headroom/calibrate/sample.hpp"
#include "headroom/hardware/system.hpp"

namespace headroom {

// Samples by the rates that they determine, without repeats.
struct SortedSamples {
  std::vector<Sample> products;
  std::vector<Sample> sustained;
  std::vector<Sample> collectives;
  std::vector<Sample> streaming;             // and empty kernels
  std::vector<Sample> collectives_in_steps;  // of so many bytes that the rings' bandwidth makes their time
  std::vector<Sample> streaming_in_steps;    // of so many bytes that they come from memory
  std::vector<Sample> attention;             // of 16 bits, forward and in bursts
  std::vector<Sample> attention_fp8;
  std::vector<Sample> attention_sustained;  // of 16 bits; that of FP8 tells nothing of training steps
  std::vector<Sample> attention_backward;
  std::vector<Sample> experts;  // of 16 bits
  bool one_rank_count = false;  // all collectives run over the same number of ranks

  // GEMMs and experts of the types in narrow_types.
  struct Narrow {
    std::vector<Sample> products;
    std::vector<Sample> sustained;
    std::vector<Sample> experts;
    bool quantizes = false;  // some of them turn their first factor into the type
  };
  std::array<Narrow, narrow_types.size()> narrow;
};

SortedSamples sorted(const std::vector<Sample>& samples);

// Throws InputError with everything that makes a fit meaningless. Returns warnings.
std::vector<std::string> check_samples(const std::vector<SampleSet>& sets, const System& base);

}  // namespace headroom
