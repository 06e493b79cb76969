// Reads members of a config.json by name, with what stands for those that it leaves out. Null is leaving out. Members that
// nobody asks for are many, and say nothing of a model's sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "headroom/interop/hugging_face.hpp"
#include "io/document.hpp"
#include "io/object_reader.hpp"

namespace headroom {

inline constexpr Range any_size{std::numeric_limits<std::int64_t>::min(),
                                std::numeric_limits<std::int64_t>::max()};

class ConfigReader {
 public:
  ConfigReader(Document& document, const Json& members, JsonPointer at)
      : document_(document), members_(members), at_(std::move(at)) {}

  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }

  // Whether the file has the key, even if it is null: "sliding_window": null is no window.
  [[nodiscard]] bool names(const std::string& key) const { return members_.contains(key); }

  // Of a member of the model file, by the end of its path there: "experts/count". Its problems are then the key's, and so are
  // those that the model file's reader finds.
  void stands_for(const std::string& ours, const std::string& key) {
    document_.origins.insert_or_assign("/" + ours, (at_ / key).to_string());
  }

  std::optional<std::int64_t> integer(const std::string& key, Range sizes = any_size) {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number_integer()) {
      report(key, "must be an integer");
      return std::nullopt;
    }
    const bool beyond = value->is_number_unsigned() && value->get<std::uint64_t>() > largest;
    const auto number = beyond ? std::numeric_limits<std::int64_t>::max() : value->get<std::int64_t>();
    if (number < sizes.least || number > sizes.most || beyond) {
      report(key, fmt::format("must be an integer from {} to {} (found {})", sizes.least, sizes.most,
                              value->dump()));
      return std::nullopt;
    }
    return number;
  }

  std::int64_t integer(const std::string& key, std::int64_t by_default, Range sizes = any_size) {
    if (const auto value = integer(key, sizes)) return *value;
    if (!has(key)) take(key, std::to_string(by_default));
    return by_default;
  }

  bool boolean(const std::string& key, bool by_default) {
    const Json* value = find(key);
    if (value == nullptr) {
      take(key, by_default ? "true" : "false");
      return by_default;
    }
    if (!value->is_boolean()) {
      report(key, "must be true or false");
      return by_default;
    }
    return value->get<bool>();
  }

  // Of a rate such as that of dropout, or a cap. Nothing is told of one that is not there.
  bool above_zero(const std::string& key, bool by_default) {
    const Json* value = find(key);
    if (value == nullptr) {
      if (by_default) take(key, "above 0");
      return by_default;
    }
    if (!value->is_number()) {
      report(key, "must be a number");
      return by_default;
    }
    return value->get<double>() > 0;
  }

  std::string text(const std::string& key, std::string_view by_default) {
    const Json* value = find(key);
    if (value == nullptr) {
      take(key, by_default);
      return std::string(by_default);
    }
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
    const auto whole = [](const Json& item) { return item.is_number_integer(); };
    if (std::is_integral_v<T> && value->is_array() && !std::all_of(value->begin(), value->end(), whole)) {
      report(key, "must be a list of integers");
      return values;
    }
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

  // Of an object of the file; without members where there is none.
  [[nodiscard]] ConfigReader inside(const std::string& key) const {
    static const Json empty = Json::object();
    const Json* value = find(key);
    return {document_, value != nullptr && value->is_object() ? *value : empty, at_ / key};
  }

  void report(const std::string& key, std::string rule) { document_.report(at_ / key, std::move(rule)); }

  // Of a key that the file leaves out: what the model type has in its place. Once is enough.
  void take(const std::string& key, std::string_view value) {
    std::string text = fmt::format("{} {}", key, value);
    if (std::find(taken_.begin(), taken_.end(), text) == taken_.end()) taken_.push_back(std::move(text));
  }
  // Of a field of the model file, or of none.
  void assume(std::string field, std::string sentence) {
    assumed_.push_back({std::move(field), std::move(sentence)});
  }

  [[nodiscard]] std::vector<HubAssumption> assumed() const {
    std::vector<HubAssumption> all;
    if (!taken_.empty()) {
      all.push_back({"", fmt::format("what the file leaves out is as its model type has it: {}",
                                     fmt::join(taken_, ", "))});
    }
    all.insert(all.end(), assumed_.begin(), assumed_.end());
    return all;
  }

 private:
  static constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  [[nodiscard]] const Json* find(const std::string& key) const {
    const auto found = members_.find(key);
    return found == members_.end() || found->is_null() ? nullptr : &*found;
  }

  Document& document_;
  const Json& members_;
  JsonPointer at_;
  std::vector<std::string> taken_;
  std::vector<HubAssumption> assumed_;
};

}  // namespace headroom
