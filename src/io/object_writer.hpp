// Writes a value with the same function over `fields` that reads it; see ObjectReader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "headroom/core/names.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/core/units.hpp"
#include "headroom/io/quantity.hpp"

namespace headroom {

class ObjectWriter {
 public:
  template <class T, class... Rule>
  void required(std::string_view key, const T& value, const Rule&...) {
    written_[std::string(key)] = json(value);
  }
  void required(std::string_view key, Bytes value, DeviceMemory kind) {
    written_[std::string(key)] = to_text(value, kind);
  }
  template <class T, class... Rule>
  void optional(std::string_view key, const T& value, const Rule&...) {
    required(key, value);
  }
  // Text that a reader takes must not be empty.
  template <class... Rule>
  void optional(std::string_view key, const std::string& value, const Rule&...) {
    if (!value.empty()) required(key, value);
  }
  template <class T, class... Rule>
  void optional(std::string_view key, const std::optional<T>& value, const Rule&...) {
    if (value) required(key, *value);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    written_[std::string(key)] = values;
  }
  void optional_texts(std::string_view key, const std::vector<std::string>& values) {
    if (!values.empty()) texts(key, values);
  }
  void optional_json(std::string_view key, const std::string& text) {
    if (!text.empty()) written_[std::string(key)] = nlohmann::ordered_json::parse(text);
  }
  template <class E>
  void optional_names(std::string_view key, const std::vector<E>& values) {
    if (values.empty()) return;
    auto& array = written_[std::string(key)] = nlohmann::ordered_json::array();
    for (const E value : values) array.push_back(name_of(value));
  }
  void format(std::int64_t version) { required("format", version); }

  template <class T, class Fields>
  void required_object(std::string_view key, const T& value, Fields fields) {
    written_[std::string(key)] = write(value, fields);
  }
  // Left out where it has no member.
  template <class T, class Fields>
  void object(std::string_view key, const T& value, Fields fields) {
    nlohmann::ordered_json members = write(value, fields);
    if (!members.empty()) written_[std::string(key)] = std::move(members);
  }
  template <Absentable T, class Fields>
  void object(std::string_view key, const T& value, Fields fields) {
    if (value) object(key, *value, fields);
  }
  template <class T, class Fields>
  void list(std::string_view key, const std::vector<T>& values, Fields fields) {
    auto& array = written_[std::string(key)] = nlohmann::ordered_json::array();
    for (const T& value : values) array.push_back(write(value, fields));
  }

  // The value as a JSON object, members in the order of its fields.
  template <class T, class Fields>
  static nlohmann::ordered_json write(const T& value, Fields fields) {
    ObjectWriter writer;
    fields(writer, value);
    return writer.written_;
  }

 private:
  static std::int64_t json(std::int64_t value) { return value; }
  static bool json(bool value) { return value; }
  static const std::string& json(const std::string& value) { return value; }
  static double json(double value) { return value; }
  template <int B, int F, int S>
  static std::string json(Quantity<B, F, S> value) {
    return to_text(value);
  }
  static std::string json(Watts value) { return to_text(value); }
  template <class E>
  static std::string_view json(const E& value) {
    return name_of(value);
  }

  nlohmann::ordered_json written_ = nlohmann::ordered_json::object();
};

}  // namespace headroom
