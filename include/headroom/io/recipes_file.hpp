// Files of recipes, format 1: settings that a training stack ships for a model on so many GPUs
// (presets/recipes/FAMILY.json). They are settings, not measurements. `headroom schema recipes` prints the JSON
// schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/parallel/edits.hpp"

namespace headroom {

struct Recipe {
  std::string name;                   // "llama3-70b-h100-64-bf16"
  std::string family;                 // "megatron-bridge" (io/releases_file.hpp)
  std::vector<std::string> releases;  // that ship these settings, by date: "26.02", "26.04"
  std::string model;
  std::string system;                 // empty: the recipe names no GPU
  std::int64_t devices = 0;           // 0: the recipe names no number
  Edits settings;                     // of the strategy and the workload
  std::vector<std::string> software;  // overrides of the stack: "cuda_graphs=layers"
  std::string source;                 // repository and files
  friend bool operator==(const Recipe&, const Recipe&) = default;
};

// Returns the recipes in a file's text; `file` is its name. Throws InputError.
std::vector<Recipe> parse_recipes(std::string_view text, const std::string& file);

// Returns the embedded recipes, in the order of their files.
std::vector<Recipe> list_recipes();

// A recipe as one release ships it.
struct NamedRecipe {
  Recipe recipe;
  std::string stack;  // "megatron-bridge@26.04"
};

// Returns the recipe that a text names: NAME, of the last release that ships it, or NAME@RELEASE, the release as
// release_of() reads it. Throws InputError, naming the nearest recipe or the releases that ship it.
NamedRecipe read_recipe(const std::string& text);

}  // namespace headroom
