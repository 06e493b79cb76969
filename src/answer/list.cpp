#include "headroom/answer/list.hpp"

#include <map>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/memory/reserves.hpp"
#include "headroom/memory/state.hpp"
#include "headroom/parallel/strategy_fields.hpp"

namespace headroom {
namespace {

std::vector<ListedModel> listed_models() {
  std::vector<ListedModel> models;
  for (Transformer& model : list_models()) {
    const ParameterCounts parameters = parameter_counts(model);
    models.push_back({.model = std::move(model), .parameters = parameters});
  }
  return models;
}

std::vector<ListedSystem> listed_systems() {
  std::vector<ListedSystem> systems;
  for (System& system : list_systems()) {
    // By a dense model that is divided every way.
    const Strategy divided{.tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2};
    ListedSystem listed{.system = {}, .reserved = reserved(system, Software{}, divided), .peaks = {}};
    for (const Dtype dtype : {Dtype::bf16, Dtype::fp8, Dtype::fp4}) {
      if (!system.performance || !has_peak(system.performance->device, dtype)) continue;
      listed.peaks.push_back({.dtype = dtype, .dense = peak_of(system.performance->device, dtype)});
    }
    listed.system = std::move(system);
    systems.push_back(std::move(listed));
  }
  return systems;
}

std::vector<ListedField> listed_fields() {
  std::vector<ListedField> fields;
  for (const StrategyField& field : strategy_fields) {
    ListedField listed{.name = field.name,
                       .flag = flag_of(field.name),
                       .short_flag = field.letter.empty() ? "" : short_flag_of(field),
                       .json = field.json,
                       .value = value_of(field, {}, {}),
                       .aliases = {},
                       .help = field.help};
    for (const std::string_view alias : aliases_of(field)) listed.aliases.push_back(flag_of(alias));
    fields.push_back(std::move(listed));
  }
  return fields;
}

// The stacks, and of each family its last release.
std::vector<Software> listed_software() {
  std::vector<Software> all = list_software();
  for (const StackFamily& family : list_families()) {
    const std::vector<StackRelease>& releases = family.releases;
    Software last = software_of(family, releases.size() - 1);
    last.source = family.source + " (" + std::to_string(releases.size()) + " releases since " +
                  releases.front().name + ": headroom list releases " + family.name + ")";
    all.push_back(std::move(last));
  }
  return all;
}

std::vector<StackFamily> listed_releases(const std::string& family) {
  if (family.empty()) return list_families();
  return {read_family(family)};
}

std::vector<Recipe> listed_recipes(const ListQuestion& question) {
  std::string model;
  if (!question.model.empty()) {
    const NameMeaning meaning = meaning_of("model", question.model);
    if (meaning.names.size() != 1)
      throw InputError("--model", "'" + question.model + "' names no model (see: headroom list models)");
    model = meaning.names.front();
  }
  const std::size_t at = question.release.find('@');
  const std::string family = at == std::string::npos ? "" : question.release.substr(0, at);
  const std::string release = at == std::string::npos ? question.release : question.release.substr(at + 1);
  std::map<std::string, std::string> meant;  // release of each family
  if (!question.release.empty()) {
    for (const StackFamily& one : list_families()) {
      if (!family.empty() && one.name != family) continue;
      try {
        meant[one.name] = one.releases[release_of(one, release)].name;
      } catch (const InputError&) {
        continue;  // of another family
      }
    }
    if (meant.empty())
      throw InputError("--release", "'" + question.release + "' is no release (see: headroom list releases)");
  }
  std::vector<Recipe> recipes = list_recipes();
  std::erase_if(recipes, [&](const Recipe& recipe) {
    if (!model.empty() && recipe.model != model) return true;
    if (question.release.empty()) return false;
    const auto named = meant.find(recipe.family);
    return named == meant.end() || !contains(recipe.releases, named->second);
  });
  return recipes;
}

}  // namespace

ListReply answer(const ListQuestion& question) {
  switch (question.listed) {
    case Listed::models: return {listed_models()};
    case Listed::systems: return {listed_systems()};
    case Listed::software: return {listed_software()};
    case Listed::releases: return {listed_releases(question.family)};
    case Listed::recipes: return {listed_recipes(question)};
    case Listed::sources: return {list_sources()};
    case Listed::fields: return {listed_fields()};
  }
  EXPECTS(false);
  return {};
}

}  // namespace headroom
