// Recipes that releases ship: by name and release, each a legal request.
#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/recipes_file.hpp"
#include "headroom/io/releases_file.hpp"
#include "messages.hpp"

namespace headroom {
namespace {

std::string value_in(const Recipe& recipe, std::string_view field) {
  for (const Edit& edit : recipe.settings) {
    if (edit.field == field) return edit.value;
  }
  return "";
}

TEST_CASE("recipes: two releases of a recipe differ in what changed between them") {
  const NamedRecipe before = read_recipe("deepseek-v3-b200-256-bf16@26.06");
  const NamedRecipe after = read_recipe("deepseek-v3-b200-256-bf16@26.08");
  CHECK(before.stack == "megatron-bridge@26.06");
  CHECK(after.stack == "megatron-bridge@26.08");
  CHECK(before.recipe.model == "deepseek-v3");
  CHECK(before.recipe.system == "dgx-b200-180g");
  CHECK(before.recipe.devices == 256);
  CHECK(value_in(before.recipe, "global_batch") == "2048");
  CHECK(value_in(after.recipe, "global_batch") == "4096");
}

TEST_CASE("recipes: without a release the last one that ships it is meant, with a day the one of the day") {
  CHECK(read_recipe("deepseek-v3-b200-256-bf16").stack == "megatron-bridge@26.08");
  CHECK(read_recipe("deepseek-v3-b200-256-bf16@2026-03-01").stack == "megatron-bridge@26.02");
  CHECK(read_recipe("deepseek-v3-b200-256-bf16@v0.5.1").stack == "megatron-bridge@26.06");
  CHECK(read_recipe("llama3-70b-a100-64-bf16").stack == "torchtitan@v0.2.2");
}

TEST_CASE("recipes: a name that is none suggests the nearest, a release that lacks it those that ship it") {
  CHECK(message_of([] { return read_recipe("deepseek-v3-b200-256-bf61").stack; }) ==
        "deepseek-v3-b200-256-bf61: is an unknown recipe (see: headroom list recipes) (did you mean "
        "'deepseek-v3-b200-256-bf16'?)");
  CHECK(message_of([] { return read_recipe("llama3-70b-a100-64-bf16@26.04").stack; }) ==
        "llama3-70b-a100-64-bf16@26.04: llama3-70b-a100-64-bf16 is shipped with v0.1.0, v0.2.0, "
        "v0.2.1, v0.2.2");
}

TEST_CASE("recipes: mistakes of a file are named where they stand") {
  const auto parsed = [](const std::string& row, const std::string& model = "llama-3-8b") {
    return message_of([&] {
      return parse_recipes(R"({"format": 1, "source": "s", "family": "torchtitan", "repository": "r",
                               "recipes": [{"model": ")" +
                               model + R"(", "paths": [], "rows": [)" + row + "]}]}",
                           "my.json")
          .size();
    });
  };
  CHECK(parsed(R"({"name": "a", "releases": "v0.1.0", "set": "t=0"})") ==
        "my.json: /recipes/0/rows/0/set: tensor_parallel: must be between 1 and 2147483647, not '0'");
  CHECK(parsed(R"({"name": "a", "releases": "v0.1.0", "set": "tp8"})") ==
        "my.json: /recipes/0/rows/0/set: 'tp8' names no field of a strategy");
  CHECK(parsed(R"({"name": "a", "releases": "26.04"})") ==
        "my.json: /recipes/0/rows/0/releases: '26.04' is no release of torchtitan");
  CHECK(parsed(R"({"name": "a", "releases": "v0.1.0"}, {"name": "a", "releases": "v0.1.0"})") ==
        "my.json: /recipes/0/rows/1/name: is already a recipe of v0.1.0");
  CHECK(contains(parsed("", "llama-9"), "my.json: /recipes/0/model: must be the name of an embedded model"));
}

}  // namespace
}  // namespace headroom
