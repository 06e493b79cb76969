// The schemas name all that files, strategies and enumerations have.
#include "headroom/io/schema.hpp"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "headroom/core/dtype.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/search/space.hpp"

namespace headroom {
namespace {

using Json = nlohmann::json;

bool has(const Json& list, std::string_view text) {
  return std::find(list.begin(), list.end(), Json(text)) != list.end();
}

Json printed(std::string_view name) { return Json::parse(schema(name)); }

// The place of a field in the schema of an object: "/properties/experts/properties/count" of "experts.count".
Json::json_pointer place_of(std::string_view path, char separator) {
  Json::json_pointer place;
  for (;;) {
    const std::size_t end = std::min(path.find(separator), path.size());
    place = place / "properties" / std::string(path.substr(0, end));
    if (end == path.size()) return place;
    path.remove_prefix(end + 1);
  }
}

void check_names(std::string_view name, const std::vector<std::string>& fields) {
  const Json file = printed(name);
  CHECK(!fields.empty());
  for (const std::string& field : fields) {
    CAPTURE(field);
    CHECK(file.contains(place_of(field, '.')));
  }
}

bool is_list(const StrategyField& field) {
  return std::holds_alternative<Member<std::vector<std::int64_t>>>(field.member) ||
         std::holds_alternative<Member<std::vector<std::string>>>(field.member);
}

}  // namespace

TEST_CASE("schemas: what a file is written with is in its schema") {
  check_names("model", model_field_names());
  check_names("system", system_field_names());
  check_names("software", software_field_names());
}

TEST_CASE("schemas: a strategy and a workload leave out no field of the table") {
  const Json definitions = printed("estimate")["$defs"];
  for (const StrategyField& field : strategy_fields) {
    CAPTURE(field.name);
    const std::size_t slash = field.json.find('/');
    const Json& object = definitions[std::string(field.json.substr(0, slash))];
    const Json::json_pointer place = place_of(field.json.substr(slash + 1), '/');
    REQUIRE(object.contains(place));
    CHECK(object[place]["description"] == field.help);
    const Json& required = object[place.parent_pointer().parent_pointer()]["required"];
    CHECK(has(required, place.back()));
  }
}

TEST_CASE("schemas: every dtype is one that a sample may have, and no other") {
  const Json names = printed("samples")["properties"]["samples"]["items"]["properties"]["dtype"]["enum"];
  REQUIRE(names.size() == dtypes.size());
  for (const DtypeRow& row : dtypes) CHECK(has(names, row.name));
}

TEST_CASE("schemas: values have the bounds that reading holds them to") {
  const Json model = printed("model");
  CHECK(model["additionalProperties"] == false);
  CHECK(has(model["required"], "hidden"));
  CHECK(model["properties"]["hidden"]["maximum"] == 1 << 22);
  CHECK(!model["properties"]["qkv_bias"].contains("default"));  // as linear_bias
  const Json layer = model["properties"]["layer_kinds"]["additionalProperties"];
  CHECK(!layer["properties"]["activation"].contains("default"));  // as the model
  CHECK(model["properties"]["activation"]["default"] == "gelu");
  const Json needs = printed("samples")["properties"]["samples"]["items"]["allOf"];
  CHECK(needs[0]["then"]["required"] == Json{"m", "n", "k"});
  const Json run = printed("runs")["items"];
  CHECK(run["properties"]["parallel"]["properties"]["fsdp"]["type"] == Json{"boolean", "null", "string"});
  CHECK(run["properties"]["id"]["type"] == "string");
}

TEST_CASE("schemas: a name that is none is refused with the nearest") {
  CHECK_THROWS_WITH_AS(schema("modle"), doctest::Contains("did you mean 'model'?"), InputError);
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
