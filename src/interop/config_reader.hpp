// Reads members of a config.json by name, with what stands for those that it leaves out. Null is leaving out. Members that
// nobody asks for are many, and say nothing of a model's sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "io/document.hpp"

namespace headroom {

class ConfigReader {
 public:
  ConfigReader(Document& document, const Json& members, JsonPointer at)
      : document_(document), members_(members), at_(std::move(at)) {}

  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }

  // Whether the file has the key, even if it is null: "sliding_window": null is no window.
  [[nodiscard]] bool names(const std::string& key) const { return members_.contains(key); }

  std::optional<std::int64_t> integer(const std::string& key) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) {
      report(key, "must be an integer");
      return std::nullopt;
    }
    return value->get<std::int64_t>();
  }

  std::int64_t integer(const std::string& key, std::int64_t by_default) {
    if (const auto value = integer(key)) return *value;
    if (!has(key)) assume(key, std::to_string(by_default));
    return by_default;
  }

  bool boolean(const std::string& key, bool by_default) {
    const Json* value = find(key);
    if (value == nullptr) return by_default;
    if (!value->is_boolean()) {
      report(key, "must be true or false");
      return by_default;
    }
    return value->get<bool>();
  }

  // Of a rate such as that of dropout.
  bool above_zero(const std::string& key, bool by_default) {
    const Json* value = find(key);
    if (value == nullptr) return by_default;
    if (!value->is_number()) {
      report(key, "must be a number");
      return by_default;
    }
    return value->get<double>() > 0;
  }

  std::string text(const std::string& key, std::string_view by_default) {
    const Json* value = find(key);
    if (value == nullptr) return std::string(by_default);
    if (!value->is_string()) {
      report(key, "must be a text");
      return std::string(by_default);
    }
    return value->get<std::string>();
  }

  // One for each layer, or none where the file has no such list.
  template <class T>
  std::vector<T> list(const std::string& key) {
    std::vector<T> values;
    const Json* value = find(key);
    if (value == nullptr) return values;
    try {
      values = value->get<std::vector<T>>();
    } catch (const Json::exception&) {
      report(key, "must be a list of what its layers are");
    }
    return values;
  }

  // Numbers of layers from 0, of so many; none where that is 0, since how many there are is not known then.
  std::vector<std::size_t> places(const std::string& key, std::size_t layers) {
    std::vector<std::size_t> result;
    if (layers == 0) return result;
    for (const std::int64_t place : list<std::int64_t>(key)) {
      if (place >= 0 && static_cast<std::uint64_t>(place) < layers) {
        result.push_back(static_cast<std::size_t>(place));
      } else {
        report(key, fmt::format("must be of the layers 0 to {} (found {})",
                                static_cast<std::int64_t>(layers) - 1, place));
      }
    }
    return result;
  }

  void report(const std::string& key, std::string rule) { document_.report(at_ / key, std::move(rule)); }
  void tell(std::string sentence) { assumed_.push_back(std::move(sentence)); }
  [[nodiscard]] const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto found = members_.find(key);
    return found == members_.end() || found->is_null() ? nullptr : &*found;
  }
  void assume(const std::string& key, const std::string& value) {
    tell(fmt::format("{} is {}, the default of the model type", key, value));
  }

  Document& document_;
  const Json& members_;
  JsonPointer at_;
  std::vector<std::string> assumed_;
};

}  // namespace headroom
