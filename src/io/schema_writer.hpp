// Writes the JSON Schema of a file with the same function over `fields` that reads it; see ObjectReader.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "headroom/core/names.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/core/units.hpp"
#include "headroom/io/quantity.hpp"
#include "object_reader.hpp"

namespace headroom {

// What a schema says of a text, and of a text with one of these units.
nlohmann::ordered_json text_schema();
nlohmann::ordered_json quantity_schema(const std::vector<std::string_view>& units);

// What a schema says of an enumeration, by the names that files have for it.
template <class E, std::size_t N>
nlohmann::ordered_json names_schema(const std::array<E, N>& values) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const E value : values) names.push_back(name_of(value));
  return {{"enum", std::move(names)}};
}
template <class E>
nlohmann::ordered_json names_schema() {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const auto& spelling : spellings<E>) names.push_back(spelling.second);
  return {{"enum", std::move(names)}};
}

// An object's schema that requires none of its members, nor of theirs; and one that says no more than what it requires.
nlohmann::ordered_json without_required(nlohmann::ordered_json schema);
nlohmann::ordered_json required_alone(const nlohmann::ordered_json& schema);

// What an object has where the file leaves a field out: the value that is read into, or what another object says.
enum class LeftOut : std::uint8_t { as_read_into, as_elsewhere };

class SchemaWriter {
 public:
  // The schema of an object that is read into `value`.
  template <class T, class Fields>
  static nlohmann::ordered_json write(T value, Fields fields, LeftOut left_out = LeftOut::as_read_into) {
    return of_object(value, fields, left_out);
  }

  template <class T, class... Rule>
  void required(std::string_view key, T& value, const Rule&... rule) {
    require(key);
    add(key, json(value, rule...));
  }
  template <class T, class... Rule>
  void optional(std::string_view key, T& value, const Rule&... rule) {
    nlohmann::ordered_json& member = add(key, json(value, rule...));
    if (left_out_ == LeftOut::as_elsewhere) return;
    if constexpr (std::is_same_v<T, bool>) member["default"] = value;
    if constexpr (std::is_enum_v<T>) {
      if (const auto& names = member["enum"];
          std::find(names.begin(), names.end(), name_of(value)) != names.end())
        member["default"] = name_of(value);
    }
    if constexpr (std::is_same_v<T, std::int64_t>) {
      if (value >= member["minimum"]) member["default"] = value;
    }
  }
  template <class T, class... Rule>
  void optional(std::string_view key, std::optional<T>&, const Rule&... rule) {
    T value{};
    add(key, json(value, rule...));
  }
  template <class T, class... Rule>
  void wanted(std::string_view key, T& value, std::vector<std::string>&, const Rule&... rule) {
    add(key, of_wanted(value, rule...));
  }
  template <class T, class Fields>
  void wanted_object(std::string_view key, T& value, std::vector<std::string>&, Fields fields) {
    object(key, value, fields);
  }
  void format(std::int64_t version) {
    require("format");
    add("format", {{"const", version}});
  }

  template <class T, class Fields>
  void required_object(std::string_view key, T& value, Fields fields) {
    require(key);
    object(key, value, fields);
  }
  template <Absentable T, class Fields>
  void object(std::string_view key, T& value, Fields fields) {
    object(key, value ? *value : value.emplace(), fields);
  }
  template <class T, class Fields>
  void object(std::string_view key, T& value, Fields fields) {
    add(key, of_object(value, fields, left_out_));
  }

  void texts(std::string_view key, const std::vector<std::string>& values) {
    require(key);
    optional_texts(key, values);
  }
  void optional_texts(std::string_view key, const std::vector<std::string>&) { add_list(key, text_schema()); }
  void optional_json(std::string_view key, const std::string&) { add(key, {{"type", "object"}}); }
  template <class E>
  void optional_names(std::string_view key, const std::vector<E>&) {
    add_list(key, names_schema<E>());
  }
  template <class T, class Fields>
  void list(std::string_view key, const std::vector<T>&, Fields fields) {
    require(key);
    add_list(key, write(T{}, fields, left_out_));
  }

 private:
  explicit SchemaWriter(LeftOut left_out) : left_out_(left_out) {}

  template <class T, class Fields>
  static nlohmann::ordered_json of_object(T& value, Fields fields, LeftOut left_out) {
    SchemaWriter writer(left_out);
    fields(writer, value);
    if (writer.schema_["required"].empty()) writer.schema_.erase("required");
    return std::move(writer.schema_);
  }
  template <class T, class... Rule>
  static nlohmann::ordered_json of_wanted(T& value, const Rule&... rule) {
    return json(value, rule...);
  }
  template <class T, class... Rule>
  static nlohmann::ordered_json of_wanted(std::optional<T>&, const Rule&... rule) {
    T value{};
    return json(value, rule...);
  }

  static nlohmann::ordered_json json(std::int64_t, Range range) {
    return {{"type", "integer"}, {"minimum", range.least}, {"maximum", range.most}};
  }
  template <std::size_t N>
  static nlohmann::ordered_json json(const std::array<std::int64_t, N>&, Range range) {
    return {{"type", "array"}, {"minItems", N}, {"maxItems", N}, {"items", json(0, range)}};
  }
  static nlohmann::ordered_json json(bool) { return {{"type", "boolean"}}; }
  static nlohmann::ordered_json json(double) { return {{"type", "number"}, {"exclusiveMinimum", 0}}; }
  static nlohmann::ordered_json json(const std::string&) { return text_schema(); }
  static nlohmann::ordered_json json(Bytes value, DeviceMemory) { return json(value); }
  template <int B, int F, int S>
  static nlohmann::ordered_json json(Quantity<B, F, S> value) {
    return quantity_schema(units_of(value));
  }
  static nlohmann::ordered_json json(Watts value) { return quantity_schema(units_of(value)); }
  template <class E, std::size_t N>
  static nlohmann::ordered_json json(E, const OneOf<E, N>& allowed) {
    return names_schema(allowed.values);
  }
  template <class E>
  requires std::is_enum_v<E>
  static nlohmann::ordered_json json(E) { return names_schema<E>(); }

  void require(std::string_view key);
  nlohmann::ordered_json& add(std::string_view key, nlohmann::ordered_json member);
  void add_list(std::string_view key, nlohmann::ordered_json items);

  LeftOut left_out_;
  nlohmann::ordered_json schema_ = {{"type", "object"},
                                    {"additionalProperties", false},
                                    {"required", nlohmann::ordered_json::array()},
                                    {"properties", nlohmann::ordered_json::object()}};
};

}  // namespace headroom
