// Arguments of forks of Megatron-LM, and of programs on it, as Megatron-LM's own.
#pragma once

#include <vector>

#include "interop/launch_in/megatron_in.hpp"
#include "interop/launch_in/setting.hpp"

namespace headroom {

// Renames arguments of MindSpeed-LLM that have another name in Megatron-LM.
void rename_of_mindspeed(std::vector<Written>& written);

// Whether a program's arguments are those of slime, which trains with Megatron-LM and generates with SGLang.
bool are_slime_words(const std::vector<Written>& written);

// Adds what slime sets, takes its GPUs, and drops the arguments of what generates
// [THUDM/slime, slime/backends/megatron_utils/arguments.py, slime/utils/arguments.py].
void take_slime(MegatronArguments& arguments, RunBuilder& run);

}  // namespace headroom
