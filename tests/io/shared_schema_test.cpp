// The schemas name exactly the fields of the table of a strategy's fields, with their types, enumerators and least values.
#include <algorithm>
#include <fstream>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/search/space.hpp"
#include "paths.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

Json schema(const std::string& name) {
  std::ifstream stream(tests::source_dir() / "schemas" / (name + ".schema.json"));
  return Json::parse(stream);
}

// What is said of one value, without the words, enumerators in alphabetical order.
Json without_words(Json definition) {
  definition.erase("description");
  if (definition.contains("enum")) std::sort(definition["enum"].begin(), definition["enum"].end());
  if (definition.contains("items")) definition["items"].erase("description");
  return definition;
}

template <class E>
Json names_of() {
  Json names = Json::array();
  for (const auto& spelling : spellings<E>) names.push_back(spelling.second);
  return names;
}

template <class T>
Json expected(const Member<T>&, const StrategyField& field) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return {{"type", "integer"}, {"minimum", least_in_files(field)}};
  } else if constexpr (std::is_same_v<T, MoeImbalance>) {  // balanced is 1
    Json named = names_of<ExpertLoad>();
    named.erase(0);
    return {{"anyOf", {{{"type", "number"}, {"minimum", field.least}}, {{"enum", named}}}}};
  } else if constexpr (std::is_same_v<T, Fraction>) {
    return {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    return {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", field.least}}}};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return {{"$ref", "#/$defs/texts"}};
  } else if constexpr (std::is_same_v<T, PrecisionModules>) {
    return {{"type", "array"}, {"items", {{"enum", names_of<PrecisionModule>()}}}};
  } else if constexpr (std::is_same_v<T, Dtype>) {  // those that the field reads
    Json names = Json::array();
    for (const auto& [dtype, name] : spellings<Dtype>) {
      Strategy strategy;
      Workload workload;
      if (set_value(field, name, strategy, workload).empty() && value_of(field, strategy, workload) == name)
        names.push_back(name);
    }
    return {{"enum", names}};
  } else {
    return {{"enum", names_of<T>()}};
  }
}

// "strategy/recompute/policy" in the definitions: "/strategy/properties/recompute/properties/policy".
std::string place_of(const StrategyField& field) {
  std::string place = "/" + std::string(field.json);
  for (std::size_t at = place.find('/', 1); at != std::string::npos; at = place.find('/', at + 1)) {
    place.insert(at, "/properties");
    at += std::string("/properties").size();
  }
  return place;
}

// The pointers of all members of an object, those of nested objects instead of the objects.
void collect(const Json& definition, const std::string& at, std::set<std::string>& members) {
  for (const auto& [name, member] : definition.at("properties").items()) {
    const std::string place = at + "/properties/" + name;
    if (member.contains("properties")) {
      collect(member, place, members);
    } else {
      members.insert(place);
    }
  }
}

bool is_required(const Json& object, const std::string& name) {
  const Json& required = object["required"];
  return std::find(required.begin(), required.end(), name) != required.end();
}

bool is_list(const StrategyField& field) {
  return std::holds_alternative<Member<std::vector<std::int64_t>>>(field.member) ||
         std::holds_alternative<Member<std::vector<std::string>>>(field.member);
}

}  // namespace

TEST_CASE("schemas: strategy and workload are the table's fields, no more and no less") {
  const Json definitions = schema("defs")["$defs"];
  std::set<std::string> members;
  for (const char* owner : {"strategy", "workload"})
    collect(definitions[owner], std::string("/") + owner, members);
  // These follow from the others.
  CHECK(members.erase("/strategy/properties/devices") == 1);
  CHECK(members.erase("/workload/properties/microbatches") == 1);

  std::set<std::string> fields;
  for (const StrategyField& field : strategy_fields) {
    const std::string place = place_of(field);
    CAPTURE(place);
    fields.insert(place);
    const Json::json_pointer pointer(place);
    REQUIRE(definitions.contains(pointer));
    CHECK(
        without_words(definitions[pointer]) ==
        without_words(std::visit([&](const auto& member) { return expected(member, field); }, field.member)));
    // JSON output leaves none out.
    CHECK(is_required(definitions[pointer.parent_pointer().parent_pointer()], pointer.back()));
  }
  CHECK(members == fields);
}

TEST_CASE("schemas: parts and measurements hold the fields that a search sets, as in every strategy") {
  const Json candidate = schema("part")["$defs"]["candidate"];
  const Json measured = schema("measurements")["properties"]["cases"]["items"]["properties"]["strategy"];
  for (const StrategyField& field : strategy_fields) {
    const std::string name(field.name);
    CAPTURE(name);
    const bool held = field.searched && !is_list(field);
    CHECK(measured["properties"].contains(name) == held);
    CHECK(is_required(measured, name) == (held && always_told(field)));
    CHECK(is_required(candidate, name) == held);
    if (!held) continue;
    // A search names no ops.
    const Json definition{{"$ref", name == "recompute" ? "defs.schema.json#/$defs/searched_policy"
                                                       : "defs.schema.json#/$defs" + place_of(field)}};
    CHECK(candidate["properties"].value(name, Json()) == definition);
    CHECK(measured["properties"].value(name, Json()) == definition);
  }
}

TEST_CASE("spaces: what a space sets are the fields that strategies of a search differ in") {
  std::set<std::string_view> searched;
  for (const StrategyField& field : strategy_fields) {
    if (field.searched && !is_list(field)) searched.insert(field.name);
  }
  CHECK(searched.erase("microbatch_group_size") == 1);  // follows from how many there are
  searched.insert("recompute_ops");                     // a list that a switch leaves out
  std::set<std::string_view> of_space;
  for (const SpaceField& field : space_fields) of_space.insert(field.field);
  CHECK(of_space == searched);
  CHECK(of_space.size() == space_fields.size());
}

}  // namespace headroom
