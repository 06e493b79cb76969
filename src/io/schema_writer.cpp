#include "schema_writer.hpp"

#include <fmt/format.h>

#include "strict_json.hpp"

namespace headroom {

using Schema = nlohmann::ordered_json;

Schema text_schema() { return {{"type", "string"}, {"pattern", "[^ ]"}, {"maxLength", longest_text_bytes}}; }

Schema quantity_schema(const std::vector<std::string_view>& units) {
  return {{"type", "string"},
          {"pattern", fmt::format("^ *[0-9.]+([eE][+-]?[0-9]+)? *({}) *$", fmt::join(units, "|"))}};
}

Schema without_required(Schema schema) {
  if (!schema.contains("properties")) return schema;
  schema.erase("required");
  for (auto& member : schema["properties"]) member = without_required(std::move(member));
  return schema;
}

Schema required_alone(const Schema& schema) {
  Schema alone = Schema::object();
  if (!schema.contains("properties")) return alone;
  if (schema.contains("required")) alone["required"] = schema["required"];
  for (const auto& [name, member] : schema["properties"].items()) {
    if (Schema of_member = required_alone(member); !of_member.empty())
      alone["properties"][name] = std::move(of_member);
  }
  return alone;
}

void SchemaWriter::require(std::string_view key) { schema_["required"].push_back(key); }

Schema& SchemaWriter::add(std::string_view key, Schema member) {
  return schema_["properties"][std::string(key)] = std::move(member);
}

void SchemaWriter::add_list(std::string_view key, Schema items) {
  add(key, {{"type", "array"}, {"maxItems", longest_list}, {"items", std::move(items)}});
}

}  // namespace headroom
