// Reads arguments of Megatron-LM and its kin as a run.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

struct MegatronArguments {
  std::vector<Written> written;
  std::string program;               // "pretrain_gpt.py"
  std::optional<Written> allocator;  // PYTORCH_CUDA_ALLOC_CONF
  std::vector<Written> environment;  // those of checked_variables that are set
  // A file that is not at hand, or words that only a run knows, may set more of them, or add arguments.
  bool environment_unknown = false;
  bool open = false;
  std::optional<std::int64_t> devices;
  bool devices_unknown = false;  // a launcher says how many, in words that only a run knows
  std::string model;             // a named one, whose sizes are not arguments
  std::string deepspeed_config;  // the text of its file, where it is at hand
};

// Puts the arguments into the builder, with what Megatron-LM makes of them by itself.
void read_megatron_arguments(const MegatronArguments& arguments, RunBuilder& run);

// Variables of the environment that Megatron-LM's own checks look at.
constexpr std::array<std::string_view, 3> checked_variables{"CUDA_DEVICE_MAX_CONNECTIONS",
                                                            "NVTE_CPU_OFFLOAD_V1", "NCCL_GRAPH_REGISTER"};

class CheckedArguments;

// A rule of Megatron-LM's own validation of arguments.
struct MegatronCheck {
  std::string_view arguments;  // the one at fault is the first of these that is given
  std::string_view fields;     // of the strategy: where a flag changes one, the rule may hold
  bool (*broken)(const CheckedArguments&) = nullptr;
  std::string_view rule;    // "needs --sequence-parallel", after the argument
  std::string_view source;  // file and line
  // Minor version of the first core_v0.N.0 with the rule, where scripts of older releases are about. Such a rule is
  // told, and refuses only scripts with an argument of that release.
  int since = 0;
};
std::span<const MegatronCheck> megatron_checks();

// Refuses what Megatron-LM refuses at start, though Headroom could evaluate it. Expects all fields to be read.
void check_megatron_arguments(const MegatronArguments& arguments, RunBuilder& run);

}  // namespace headroom
