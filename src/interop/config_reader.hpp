// Reads members of a config.json by name, with what stands for those that it leaves out. Null is leaving out. Members that
// nobody asks for are many, and say nothing of a model's sizes. "a/b" names the member b of the object a.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
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
  [[nodiscard]] bool names(const std::string& key) const { return member(key) != nullptr; }

  // Whether the key has this text.
  [[nodiscard]] bool says(const std::string& key, std::string_view text) const {
    return is_text(key) && find(key)->get<std::string>() == text;
  }

  // Returns the first of several names of one thing that the file has, or else the first. Notes two that say
  // different things.
  template <std::size_t N>
  std::string key_of(const std::array<std::string_view, N>& names) {
    const Json* found = nullptr;
    std::string key(names[0]);
    for (const std::string_view name : names) {
      if (name.empty()) break;
      const std::string other(name);
      const Json* value = find(other);
      if (value == nullptr) continue;
      if (found == nullptr) {
        found = value;
        key = other;
      } else if (of_all_layers(*found) != of_all_layers(*value)) {
        report(other, fmt::format("must be what {} is, another name of it ({} and {})", key, value->dump(),
                                  found->dump()));
      }
    }
    return key;
  }

  // Of a member of the model file, by the end of its path there: "experts/count". Its problems are then the key's, and so are
  // those that the model file's reader finds.
  void stands_for(const std::string& ours, const std::string& key) {
    document_.origins.insert_or_assign("/" + ours, at(key).to_string());
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

  [[nodiscard]] bool is_text(const std::string& key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string();
  }

  double number(const std::string& key, double by_default) {
    const Json* value = find(key);
    if (value == nullptr) return by_default;
    if (!value->is_number() || value->get<double>() <= 0) {
      report(key, "must be a number above 0");
      return by_default;
    }
    return value->get<double>();
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

  // A number for each layer is read as one number where all are the same.
  std::int64_t of_each_layer(const std::string& key, std::int64_t by_default, Range sizes = any_size) {
    const Json* value = find(key);
    if (value == nullptr || !value->is_array()) return integer(key, by_default, sizes);
    const std::vector<std::int64_t> each = list<std::int64_t>(key);
    if (each.empty()) return by_default;  // which is reported, or says nothing
    const auto [least, most] = std::minmax_element(each.begin(), each.end());
    if (*least != *most) {
      report(key, fmt::format("must be the same in all layers (found {} and {})", *least, *most));
    } else if (*least < sizes.least || *least > sizes.most) {
      report(key,
             fmt::format("must be an integer from {} to {} (found {})", sizes.least, sizes.most, *least));
    }
    return each.front();
  }

  // Of an object of the file; without members where there is none. It notes what it assumes here.
  [[nodiscard]] ConfigReader inside(const std::string& key) const {
    static const Json empty = Json::object();
    const Json* value = find(key);
    ConfigReader reader(document_, value != nullptr && value->is_object() ? *value : empty, at(key));
    reader.notes_ = notes_;
    return reader;
  }

  void report(const std::string& key, std::string rule) { document_.report(at(key), std::move(rule)); }

  // Of a key that the file leaves out: what the model type has in its place. Once is enough.
  void take(const std::string& key, std::string_view value) {
    std::string text = fmt::format("{} {}", key, value);
    std::vector<std::string>& taken = notes_->taken;
    if (std::find(taken.begin(), taken.end(), text) == taken.end()) taken.push_back(std::move(text));
  }
  // Of a field of the model file, or of none.
  void assume(std::string field, std::string sentence) {
    notes_->assumed.push_back({std::move(field), std::move(sentence)});
  }

  [[nodiscard]] std::vector<HubAssumption> assumed() const {
    std::vector<HubAssumption> all;
    if (!notes_->taken.empty()) {
      all.push_back({"", fmt::format("what the file leaves out is as its model type has it: {}",
                                     fmt::join(notes_->taken, ", "))});
    }
    all.insert(all.end(), notes_->assumed.begin(), notes_->assumed.end());
    return all;
  }

 private:
  static constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  // The value of a list that has it for each layer, else the value itself.
  static const Json& of_all_layers(const Json& value) {
    const auto is_first = [&](const Json& other) { return other == value.front(); };
    const bool list = value.is_array() && !value.empty();
    return list && std::all_of(value.begin(), value.end(), is_first) ? value.front() : value;
  }

  struct Notes {
    std::vector<std::string> taken;
    std::vector<HubAssumption> assumed;
  };

  // Of the file, even if it is null.
  [[nodiscard]] const Json* member(const std::string& key) const {
    const Json* value = &members_;
    for (std::size_t begin = 0; begin <= key.size();) {
      const std::size_t end = std::min(key.find('/', begin), key.size());
      if (!value->is_object()) return nullptr;
      const auto found = value->find(key.substr(begin, end - begin));
      if (found == value->end()) return nullptr;
      value = &*found;
      begin = end + 1;
    }
    return value;
  }

  [[nodiscard]] const Json* find(const std::string& key) const {
    const Json* value = member(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  [[nodiscard]] JsonPointer at(const std::string& key) const { return at_ / JsonPointer("/" + key); }

  Document& document_;
  const Json& members_;
  JsonPointer at_;
  std::shared_ptr<Notes> notes_ = std::make_shared<Notes>();
};

}  // namespace headroom
