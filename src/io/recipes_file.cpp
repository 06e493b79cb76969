#include "headroom/io/recipes_file.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "file_formats.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "object_reader.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// Lists of a file are texts with spaces between their entries: a file has thousands of them.
struct WrittenRecipe {
  std::string name;
  std::int64_t devices = 0;
  std::string releases;
  std::string set;
  std::string software;
};

// Recipes of a model on a system, and what all of them set.
struct WrittenGroup {
  std::string model;
  std::string system;
  std::vector<std::string> paths;
  std::string set;
  std::string software;
  std::vector<WrittenRecipe> rows;
};

struct WrittenRecipes {
  std::string source;
  std::string family;
  std::string repository;
  std::vector<WrittenGroup> groups;
};

constexpr Range device_counts{1, std::int64_t{1} << 20};

constexpr auto row_fields = [](auto& fields, auto& row) {
  fields.required("name", row.name);
  fields.optional("devices", row.devices, device_counts);
  fields.required("releases", row.releases);
  fields.optional("set", row.set);
  fields.optional("software", row.software);
};

constexpr auto group_fields = [](auto& fields, auto& group) {
  fields.required("model", group.model);
  fields.optional("system", group.system);
  fields.texts("paths", group.paths);
  fields.optional("set", group.set);
  fields.optional("software", group.software);
  fields.list("rows", group.rows, row_fields);
};

constexpr auto recipes_fields = [](auto& fields, auto& it) {
  fields.format(1);
  fields.required("source", it.source);
  fields.required("family", it.family);
  fields.required("repository", it.repository);
  fields.list("recipes", it.groups, group_fields);
};

// Returns the entries of a list with spaces between them.
std::vector<std::string> entries(std::string_view text) {
  std::vector<std::string> result;
  if (text.empty()) return result;
  for (const std::string_view part : parts_of(text, ' ')) result.emplace_back(part);
  return result;
}

// Reads "t=8 sequence_parallel" over `edits`. Returns the rule that it breaks.
std::string read_edits(std::string_view text, Edits& edits) {
  Strategy strategy;
  Workload workload;
  for (const std::string& entry : entries(text)) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const StrategyField* const field = find_field(entry.substr(0, equals));
    if (field == nullptr) return fmt::format("'{}' names no field of a strategy", printable(entry));
    Edit edit{std::string(field->name), equals < entry.size() ? entry.substr(equals + 1) : "yes"};
    if (std::string rule = apply(edit, strategy, workload); !rule.empty())
      return fmt::format("{}: {}", edit.field, rule);
    const auto earlier = std::find_if(edits.begin(), edits.end(),
                                      [&](const Edit& other) { return other.field == edit.field; });
    if (earlier == edits.end()) {
      edits.push_back(std::move(edit));
    } else {
      *earlier = std::move(edit);
    }
  }
  return {};
}

void check_names(const WrittenRecipes& written, Document& document) {
  const auto named = [&](const JsonPointer& at, std::string_view kind, const std::string& name) {
    if (name.empty() || find_embedded(kind, name) != nullptr) return;
    document.report(at, "must be the name of an embedded " + std::string(kind) + " file" +
                            did_you_mean(name, embedded_names(kind)));
  };
  named(JsonPointer("/family"), "release", written.family);
  for (std::size_t i = 0; i < written.groups.size(); ++i) {
    const JsonPointer at = JsonPointer("/recipes") / i;
    named(at / "model", "model", written.groups[i].model);
    named(at / "system", "system", written.groups[i].system);
  }
}

// Notes releases that the family does not have, and a name that a release has twice.
void check_releases(const std::vector<std::string>& releases, const std::string& name,
                    const StackFamily& family, const JsonPointer& at,
                    std::set<std::pair<std::string, std::string>>& seen, Document& document) {
  for (const std::string& release : releases) {
    const bool known = std::any_of(family.releases.begin(), family.releases.end(),
                                   [&](const StackRelease& one) { return one.name == release; });
    if (!known)
      document.report(at / "releases",
                      fmt::format("'{}' is no release of {}", printable(release), family.name));
    if (!seen.emplace(name, release).second)
      document.report(at / "name", fmt::format("is already a recipe of {}", release));
  }
}

}  // namespace

std::vector<Recipe> recipes_of(Document document) {
  WrittenRecipes written;
  ObjectReader::read(document, JsonPointer(), written, recipes_fields);
  check_names(written, document);
  document.finish();
  const StackFamily family = read_family(written.family);
  std::vector<Recipe> recipes;
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 0; i < written.groups.size(); ++i) {
    const WrittenGroup& group = written.groups[i];
    const JsonPointer at = JsonPointer("/recipes") / i;
    Recipe shared;
    shared.family = written.family;
    shared.model = group.model;
    shared.system = group.system;
    shared.source = written.repository + ", " + joined(group.paths);
    if (std::string rule = read_edits(group.set, shared.settings); !rule.empty())
      document.report(at / "set", std::move(rule));
    for (std::size_t j = 0; j < group.rows.size(); ++j) {
      const WrittenRecipe& row = group.rows[j];
      const JsonPointer place = at / "rows" / j;
      Recipe recipe = shared;
      recipe.name = row.name;
      recipe.devices = row.devices;
      recipe.releases = entries(row.releases);
      recipe.software = entries(group.software);
      for (std::string& override : entries(row.software)) recipe.software.push_back(std::move(override));
      if (std::string rule = read_edits(row.set, recipe.settings); !rule.empty())
        document.report(place / "set", std::move(rule));
      check_releases(recipe.releases, recipe.name, family, place, seen, document);
      recipes.push_back(std::move(recipe));
    }
  }
  document.finish();
  return recipes;
}

nlohmann::ordered_json recipes_schema() { return SchemaWriter::write(WrittenRecipes{}, recipes_fields); }

std::vector<Recipe> parse_recipes(std::string_view text, const std::string& file) {
  return recipes_of(read_document(text, file, longest_list_of_rows));
}

std::vector<Recipe> list_recipes() {
  std::vector<Recipe> all;
  for (const std::string_view name : embedded_names("recipe")) {
    const EmbeddedFile* const file = find_embedded("recipe", name);
    for (Recipe& recipe : parse_recipes(file->text, std::string(file->path)))
      all.push_back(std::move(recipe));
  }
  return all;
}

NamedRecipe read_recipe(const std::string& text) {
  const std::size_t at = std::min(text.find('@'), text.size());
  const std::string name = text.substr(0, at);
  const std::string asked = at < text.size() ? text.substr(at + 1) : "";
  if (at + 1 == text.size()) throw InputError(printable(text), "must name a release or a day behind the @");
  std::vector<Recipe> all = list_recipes();
  std::vector<std::string_view> names;
  names.reserve(all.size());
  for (const Recipe& recipe : all) names.push_back(recipe.name);
  if (!contains(names, std::string_view(name))) {
    throw InputError(printable(text),
                     "is an unknown recipe (see: headroom list recipes)" + did_you_mean(name, names));
  }
  const Recipe* found = nullptr;
  std::string found_date;
  std::string found_release;
  std::vector<std::string> shipped;
  std::map<std::string, StackFamily> families;
  for (const Recipe& recipe : all) {
    if (recipe.name != name) continue;
    if (!families.contains(recipe.family)) families[recipe.family] = read_family(recipe.family);
    const StackFamily& family = families[recipe.family];
    std::optional<std::string> meant;
    if (!asked.empty()) {
      try {
        meant = family.releases[release_of(family, asked)].name;
      } catch (const InputError&) {
        meant = "";  // of another family
      }
    }
    for (const std::string& release : recipe.releases) {
      shipped.push_back(release);
      const std::string& date = family.releases[release_of(family, release)].date;
      if ((meant && *meant != release) || date < found_date) continue;
      found = &recipe;
      found_date = date;
      found_release = release;
    }
  }
  if (found == nullptr) {
    throw InputError(printable(text), fmt::format("{} is shipped with {}", name, joined(shipped)));
  }
  return {.recipe = *found, .stack = found->family + "@" + found_release};
}

}  // namespace headroom
