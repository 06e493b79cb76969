// Reads arguments of Megatron-LM and its kin as a run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

struct MegatronArguments {
  std::vector<Written> written;
  std::string program;               // "pretrain_gpt.py"
  std::optional<Written> allocator;  // PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::int64_t> devices;
  bool devices_unknown = false;  // a launcher says how many, in words that only a run knows
  std::string model;             // a named one, whose sizes are not arguments
  std::string deepspeed_config;  // the text of its file, where it is at hand
};

// Puts the arguments into the builder, with what Megatron-LM makes of them by itself.
void read_megatron_arguments(const MegatronArguments& arguments, RunBuilder& run);

}  // namespace headroom
