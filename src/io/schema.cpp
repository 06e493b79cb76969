#include "headroom/io/schema.hpp"

#include <algorithm>
#include <array>
#include <type_traits>
#include <variant>

#include <fmt/format.h>

#include "file_formats.hpp"
#include "headroom/calibrate/comparison.hpp"
#include "headroom/calibrate/sample.hpp"
#include "headroom/core/error.hpp"
#include "headroom/core/expects.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/parallel/strategy_fields.hpp"
#include "headroom/plan/plan.hpp"
#include "schema_writer.hpp"
#include "searched_members.hpp"
#include "text.hpp"

namespace headroom {
namespace {

using Schema = nlohmann::ordered_json;

// A file that is read by a table of fields.
struct FileSchema {
  std::string_view name;
  Schema (*write)();
};
constexpr std::array file_schemas{FileSchema{"measurements", measurements_schema},
                                  FileSchema{"model", model_schema},
                                  FileSchema{"recipes", recipes_schema},
                                  FileSchema{"releases", releases_schema},
                                  FileSchema{"runs", runs_schema},
                                  FileSchema{"samples", samples_schema},
                                  FileSchema{"software", software_schema},
                                  FileSchema{"source", source_schema},
                                  FileSchema{"spreads", spreads_schema},
                                  FileSchema{"system", system_schema},
                                  FileSchema{"trials", trials_schema}};

// The enumerations of replies, by the names that they are referred to with.
struct Enumeration {
  const char* name;
  Schema (*write)();
};
constexpr std::array enumerations{Enumeration{"detail", names_schema<Detail>},
                                  Enumeration{"dtype", names_schema<Dtype>},
                                  Enumeration{"moe_balancing", names_schema<MoeBalancing>},
                                  Enumeration{"launcher", names_schema<Launcher>},
                                  Enumeration{"pass", names_schema<LayerPass>},
                                  Enumeration{"measure", names_schema<Measure>},
                                  Enumeration{"precision", names_schema<Precision>},
                                  Enumeration{"sample_kind", names_schema<SampleKind>},
                                  Enumeration{"sample_load", names_schema<Load>},
                                  Enumeration{"step_rates", names_schema<StepRates>},
                                  Enumeration{"verdict", names_schema<Verdict>}};

// Embedded beside the schemas of replies: what they share, and what fields of files mean.
constexpr std::string_view shared_name = "defs";
constexpr std::string_view descriptions_name = "descriptions";

Schema embedded(std::string_view name) {
  const EmbeddedFile* const file = find_embedded("schema", name);
  EXPECTS(file != nullptr);
  return Schema::parse(file->text);
}

template <class T>
Schema json_of(const Member<T>&, const StrategyField& field) {
  Schema texts = {{"type", "array"}, {"items", {{"type", "string"}}}};
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return {{"type", "integer"}, {"minimum", least_in_files(field)}};
  } else if constexpr (std::is_same_v<T, MoeImbalance>) {  // balanced is 1
    Schema named = names_schema<ExpertLoad>();
    named["enum"].erase(0);
    return {{"anyOf", {{{"type", "number"}, {"minimum", field.least}}, named}}};
  } else if constexpr (std::is_same_v<T, Fraction>) {
    return {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    return {{"type", "array"}, {"items", {{"type", "integer"}, {"minimum", field.least}}}};
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return texts;
  } else if constexpr (std::is_same_v<T, PrecisionModules>) {
    return {{"type", "array"}, {"items", names_schema<PrecisionModule>()}};
  } else if constexpr (std::is_same_v<T, Dtype>) {  // those that the field reads
    Schema names = Schema::array();
    for (const auto& [dtype, name] : spellings<Dtype>) {
      Strategy strategy;
      Workload workload;
      if (set_value(field, name, strategy, workload).empty() && value_of(field, strategy, workload) == name)
        names.push_back(name);
    }
    return {{"enum", std::move(names)}};
  } else {
    return names_schema<T>();
  }
}

Schema object_schema() {
  return {{"type", "object"},
          {"additionalProperties", false},
          {"required", Schema::array()},
          {"properties", Schema::object()}};
}

void add_field(Schema& object, const std::string& name, Schema field) {
  object["required"].push_back(name);
  object["properties"][name] = std::move(field);
}

// An object of replies, "strategy" or "workload", which leave none of its fields out.
Schema fields_of(std::string_view owner) {
  Schema schema = object_schema();
  for (const StrategyField& field : strategy_fields) {
    if (!field.json.starts_with(owner)) continue;
    Schema* object = &schema;
    std::string_view path = field.json.substr(owner.size() + 1);
    for (std::size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
      const std::string name(path.substr(0, slash));
      if (!(*object)["properties"].contains(name)) add_field(*object, name, object_schema());
      object = &(*object)["properties"][name];
      path.remove_prefix(slash + 1);
    }
    Schema value = {{"description", field.help}};
    value.update(std::visit([&](const auto& member) { return json_of(member, field); }, field.member));
    add_field(*object, std::string(path), std::move(value));
  }
  return schema;
}

// What replies share: that of `defs`, and of strategies.
Schema shared_definitions() {
  Schema definitions = embedded(shared_name)["$defs"];
  const auto define = [&](const char* name, Schema definition) {
    EXPECTS(!definitions.contains(name));
    definitions[name] = std::move(definition);
  };
  for (const Enumeration& enumeration : enumerations) define(enumeration.name, enumeration.write());
  const auto count = [](const char* description) {
    return Schema{{"description", description}, {"type", "integer"}, {"minimum", 1}};
  };
  definitions["strategy"] = fields_of("strategy");
  add_field(definitions["strategy"], "devices", count("Ranks in all"));
  definitions["workload"] = fields_of("workload");
  add_field(definitions["workload"], "microbatches", count("n, on each pipeline"));
  definitions["searched_strategy"] = SchemaWriter::write(Strategy{}, [](auto& fields, auto& strategy) {
    searched_members(fields, strategy, SearchedMembers::all);
  });
  definitions["searched_strategy"].erase("additionalProperties");  // whoever refers to it has more
  return definitions;
}

// Puts the definitions that a value refers to, and those that these refer to, beside those that are there.
void add_definitions(const Schema& value, const Schema& shared, Schema& definitions) {
  if (value.is_structured()) {
    for (const Schema& inner : value) add_definitions(inner, shared, definitions);
  }
  if (!value.is_object() || !value.contains("$ref")) return;
  constexpr std::string_view place = "#/$defs/";
  const auto reference = value["$ref"].get<std::string>();
  EXPECTS(reference.starts_with(place));
  const std::string name = reference.substr(place.size(), reference.find('/', place.size()) - place.size());
  if (definitions.contains(name)) return;
  EXPECTS(shared.contains(name));
  definitions[name] = shared[name];
  add_definitions(shared[name], shared, definitions);
}

Schema reply_schema(std::string_view name) {
  Schema schema = embedded(name);
  const Schema shared = shared_definitions();
  Schema definitions = schema.value("$defs", Schema::object());
  schema.erase("$defs");
  add_definitions(schema, shared, definitions);
  const Schema own = definitions;
  for (const Schema& definition : own) add_definitions(definition, shared, definitions);
  if (!definitions.empty()) schema["$defs"] = std::move(definitions);
  return schema;
}

// The text of a path from the file's root, "/heads", or of the longest end of it that has one: "latent_attention.heads" goes
// before "heads".
const Schema* description_of(const Schema& descriptions, std::string_view path) {
  if (const auto whole = descriptions.find(fmt::format("/{}", path)); whole != descriptions.end())
    return &*whole;
  for (;;) {
    const auto found = descriptions.find(path);
    if (found != descriptions.end()) return &*found;
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos) return nullptr;
    path.remove_prefix(dot + 1);
  }
}

void describe(Schema& schema, const std::string& path, const Schema& descriptions) {
  if (const auto members = schema.find("properties"); members != schema.end()) {
    for (auto& [name, member] : members->items()) {
      const std::string at = path.empty() ? name : path + "." + name;
      describe(member, at, descriptions);
      const Schema* const text = description_of(descriptions, at);
      if (text == nullptr) continue;
      Schema described = {{"description", *text}};
      described.update(member);
      member = std::move(described);
    }
  }
  for (const char* inner : {"items", "additionalProperties"}) {
    if (const auto found = schema.find(inner); found != schema.end() && found->is_object())
      describe(*found, path, descriptions);
  }
  if (const auto choices = schema.find("oneOf"); choices != schema.end()) {
    for (Schema& choice : *choices) describe(choice, path, descriptions);
  }
}

Schema file_schema(const FileSchema& file) {
  const Schema descriptions = embedded(descriptions_name)[file.name];
  Schema schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                   {"title", fmt::format("Headroom {} file", file.name)},
                   {"description", descriptions[""]}};
  schema.update(file.write());
  describe(schema, "", descriptions);
  return schema;
}

}  // namespace

std::vector<std::string_view> schema_names() {
  std::vector<std::string_view> names;
  names.reserve(std::size(file_schemas));
  for (const FileSchema& file : file_schemas) names.push_back(file.name);
  for (const std::string_view name : embedded_names("schema")) {
    if (name != shared_name && name != descriptions_name) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string schema(std::string_view name) {
  const std::vector<std::string_view> names = schema_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError("schema", fmt::format("'{}' names no schema, must be one of {}{}", printable(name),
                                           fmt::join(names, ", "), did_you_mean(name, names)));
  const auto file = std::find_if(file_schemas.begin(), file_schemas.end(),
                                 [&](const FileSchema& it) { return it.name == name; });
  return (file == file_schemas.end() ? reply_schema(name) : file_schema(*file)).dump(2) + '\n';
}

}  // namespace headroom
