// --recipe: settings that a training stack ships, in place of flags that are not given.
#pragma once

#include "cli/changed_flags.hpp"
#include "cli/space_flags.hpp"

namespace headroom::cli {

void add_recipe_flag(Command command, RequestFlags& flags);

// Puts model, system, stack, GPUs and strategy of the recipe, if one is named, into flags that were not given.
// `has_system`: --system was given. Throws InputError where no such recipe is known, or where neither it nor a
// flag of `command` says the model.
void use_recipe(AllFlags& flags, const char* command, bool has_system);

// The same for a search, which keeps of the strategy only the precision and what is not searched.
void use_recipe(AllFlags& flags, SpaceFlags& space, bool has_system);

}  // namespace headroom::cli
