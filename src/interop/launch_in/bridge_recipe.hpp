// Recipes of Megatron-Bridge that a command starts from. Those that Headroom has supply the settings that the
// command leaves out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/io/recipes_file.hpp"
#include "interop/launch_in/tree_run.hpp"

namespace headroom {

// Returns whether this program of Megatron-Bridge runs a recipe: scripts/training/run_recipe.py,
// scripts/performance/setup_experiment.py.
bool runs_bridge_recipe(std::string_view program);

// Returns the long name of a short flag (--model_family_name for -m), and other words as they are.
std::string full_bridge_flag(const std::string& word);

// What a command or a function's name says of a performance recipe.
struct RecipeWords {
  std::string name;   // as the command writes it: "llama3 70b", "llama3_70b_pretrain_64gpu_h100_bf16_config"
  std::string model;  // "llama-3-70b"; empty: not known here
  std::string gpu;    // "h100"
  std::string dtype;  // "bf16", "fp8_cs"
  std::string variant;  // "v2"; empty: the default
  std::optional<std::int64_t> devices;
  bool tunes = false;    // fine-tunes: by --task or by its name
  bool adapter = false;  // with low-rank adapters
};

// Takes the flags that select a recipe out of a command's settings. Returns nothing where none does.
std::optional<RecipeWords> take_recipe_words(std::vector<Written>& written);

// Returns the matching recipe for the nearest number of GPUs, from the last release that has it. Returns
// nothing if none matches, or if the command fine-tunes: Headroom has no recipes of fine-tuning.
std::optional<Recipe> recipe_of(const RecipeWords& words);

// Sets fields that are still unset to the recipe's values, with the global batch scaled by the GPUs.
void fill_from_recipe(const Recipe& recipe, RunScale& scale, RunBuilder& builder);

// Returns the defaults of a NeMo 2 recipe ("llm.llama3_8b.pretrain_recipe"), or nothing if it is not known.
std::optional<Edits> defaults_of_nemo(std::string_view recipe);

// Sets the fields of `settings` that are still unset.
void fill_unset(const Edits& settings, RunScale& scale, RunBuilder& builder);

}  // namespace headroom
