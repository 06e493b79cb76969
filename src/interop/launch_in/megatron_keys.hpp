// Arguments of Megatron-LM, its forks and Megatron-Core's configuration: how each is taken
// [Megatron-LM, megatron/training/arguments.py, core/transformer/transformer_config.py, core/model_parallel_config.py;
// Megatron-DeepSpeed, megatron/arguments.py; Pai-Megatron-Patch, megatron_patch/arguments.py].
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "interop/launch_in/setting.hpp"

namespace headroom {

// The row of an argument, or null.
const LaunchKey* find_megatron_key(std::string_view name);

// Names of arguments that matter, of which a misspelt one may be.
std::vector<std::string_view> megatron_names();

// Whether an argument stands alone: what follows it is none of its values.
bool is_megatron_switch(std::string_view name);
// Whether Megatron-LM's parser refuses an argument without a value.
bool needs_megatron_value(std::string_view name);

}  // namespace headroom
