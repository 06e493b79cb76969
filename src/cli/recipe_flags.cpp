#include "cli/recipe_flags.hpp"

#include <algorithm>

#include "cli/changed_flags.hpp"
#include "headroom/io/recipes_file.hpp"

namespace headroom::cli {
namespace {

// Puts what a recipe is for into flags that were not given: all but the strategy.
void put_question(const NamedRecipe& named, AllFlags& flags, bool has_system) {
  const Recipe& recipe = named.recipe;
  if (flags.request.model.empty()) flags.request.model = recipe.model;
  if (!has_system && !recipe.system.empty()) flags.system.system = recipe.system;
  if (!flags.system.software.empty()) return;
  flags.system.software = named.stack;
  lay_over(recipe.software, flags.system.software_overrides);
}

void put_field(const Edit& edit, RequestFlags& flags) {
  const StrategyField* const field = find_field(edit.field);
  FieldFlag& flag = flags.fields[static_cast<std::size_t>(field - strategy_fields.data())];
  if (flag.text || flag.on) return;
  if (!field->value.empty()) {
    flag.text = edit.value;
  } else {
    flag.on = edit.value == "yes";
  }
}

bool recomputes(const Edit& edit) { return find_field(edit.field)->group == FieldGroup::recompute; }

// Returns whether a search takes a field from a recipe: the workload, and what is kept in which dtype.
bool is_asked(const std::string& field) {
  const FieldGroup group = find_field(field)->group;
  return field == "global_batch" || group == FieldGroup::model ||
         (group == FieldGroup::saved && field.find("offload") == std::string::npos);
}

}  // namespace

void add_recipe_flag(Command command, RequestFlags& flags) {
  command.find("model").required(false);
  command.in(topic::system)
      .option("--recipe", flags.recipe, "NAME[@RELEASE]",
              "Settings that a stack ships (headroom list recipes). Flags override them");
}

void use_recipe(AllFlags& flags, const char* command, bool has_system) {
  if (!flags.request.recipe) {
    if (flags.request.model.empty()) throw UsageError({{"", "model is required"}}, command);
    return;
  }
  const NamedRecipe named = read_recipe(*flags.request.recipe);
  put_question(named, flags, has_system);
  // A recomputation that is given stands alone.
  const bool own =
      std::any_of(strategy_fields.begin(), strategy_fields.end(), [&](const StrategyField& field) {
        return field.group == FieldGroup::recompute && flags.request.text(field.name);
      });
  for (const Edit& edit : named.recipe.settings) {
    if (!own || !recomputes(edit)) put_field(edit, flags.request);
  }
  if (named.recipe.devices > 0 && !flags.request.devices && !flags.request.text("data_parallel"))
    flags.request.devices = std::to_string(named.recipe.devices);
}

void use_recipe(AllFlags& flags, SpaceFlags& space, bool has_system) {
  if (!flags.request.recipe) return;
  const NamedRecipe named = read_recipe(*flags.request.recipe);
  put_question(named, flags, has_system);
  for (const Edit& edit : named.recipe.settings) {
    const auto searched = std::find_if(space_fields.begin(), space_fields.end(),
                                       [&](const SpaceField& field) { return field.field == edit.field; });
    if (searched == space_fields.end()) {
      if (is_asked(edit.field)) put_field(edit, flags.request);
    } else if (edit.field == "precision") {
      FlagText& values = space.fields[static_cast<std::size_t>(searched - space_fields.begin())].values;
      if (!values) values = edit.value;
    }
  }
  if (named.recipe.devices > 0 && !space.devices) space.devices = std::to_string(named.recipe.devices);
}

}  // namespace headroom::cli
