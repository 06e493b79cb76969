// Reads the members of one JSON object into the members of a value, noting every mistake in the document.
//
// A file format is written once, as a function over `fields`: ObjectReader reads with it, ObjectWriter writes
// with it. A field that breaks its rule leaves its value as it was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "document.hpp"
#include "headroom/core/names.hpp"
#include "headroom/core/on_heap.hpp"
#include "headroom/core/reading.hpp"
#include "headroom/core/units.hpp"
#include "headroom/io/quantity.hpp"

namespace headroom {

inline constexpr std::size_t longest_text_bytes = 4000;

// An integer written in digits only, within bounds: 96.0 and 1e3 are fractions in disguise.
struct Range {
  std::int64_t least;
  std::int64_t most;
};

// Some of an enumeration's values, where not all make sense.
template <class E, std::size_t N>
struct OneOf {
  std::array<E, N> values;
};
template <class E, class... Es>
OneOf(E, Es...) -> OneOf<E, 1 + sizeof...(Es)>;
template <class E, std::size_t N>
OneOf(std::array<E, N>) -> OneOf<E, N>;

class ObjectReader {
 public:
  // Reads the object at a place of the document, and notes every key there that no field asked for. Whether
  // there was an object.
  template <class T, class Fields>
  static bool read(Document& document, const JsonPointer& at, T& value, Fields fields) {
    ObjectReader reader(document, at);
    if (reader.object_ == nullptr) return false;
    fields(reader, value);
    reader.report_unknown_keys();
    return true;
  }

  template <class T, class... Rule>
  void required(std::string_view key, T& value, const Rule&... rule) {
    if (find(key, /*required=*/true) != nullptr) take(key, value, rule...);
  }
  template <class T, class... Rule>
  void optional(std::string_view key, T& value, const Rule&... rule) {
    if (find(key, /*required=*/false) != nullptr) take(key, value, rule...);
  }
  // Without the key there is no value, nor where what is given breaks its rule.
  template <class T, class... Rule>
  void optional(std::string_view key, std::optional<T>& value, const Rule&... rule) {
    if (find(key, /*required=*/false) == nullptr) return;
    const std::size_t before = mistakes_;
    T taken{};
    take(key, taken, rule...);
    if (mistakes_ == before) value = std::move(taken);
  }

  // Without the key the value stays as it was, and the place of the key ("model.layers") is added to what is absent.
  template <class T, class... Rule>
  void wanted(std::string_view key, T& value, std::vector<std::string>& absent, const Rule&... rule) {
    if (find_wanted(key, absent)) take(key, value, rule...);
  }
  template <class T, class Fields>
  void wanted_object(std::string_view key, T& value, std::vector<std::string>& absent, Fields fields) {
    if (find_wanted(key, absent)) read(document_, at_ / std::string(key), value, fields);
  }

  // The version of the file format, which must be this one.
  void format(std::int64_t version);

  // A nested object.
  template <class T, class Fields>
  void required_object(std::string_view key, T& value, Fields fields) {
    if (find(key, /*required=*/true) != nullptr) read(document_, at_ / std::string(key), value, fields);
  }

  // A nested object without which there is no value.
  template <Absentable T, class Fields>
  void object(std::string_view key, T& value, Fields fields) {
    if (find(key, /*required=*/false) != nullptr) {
      read(document_, at_ / std::string(key), value.emplace(), fields);
    }
  }

  // A nested object that may be left out.
  template <class T, class Fields>
  void object(std::string_view key, T& value, Fields fields) {
    if (find(key, /*required=*/false) != nullptr) read(document_, at_ / std::string(key), value, fields);
  }

  // An object whose members another table of fields reads: its text. Empty where it is left out.
  void optional_json(std::string_view key, std::string& text);

  // A list of texts, possibly empty.
  void texts(std::string_view key, std::vector<std::string>& values);
  // Empty where it is left out.
  void optional_texts(std::string_view key, std::vector<std::string>& values);

  // A list of enumerators by their names; as it is where it is left out.
  template <class E>
  void optional_names(std::string_view key, std::vector<E>& values) {
    std::vector<std::string> names;
    const Json* const given = find(key, /*required=*/false);
    if (given == nullptr) return;
    if (is_overridden(key) && given->is_string()) {  // a flag's list has commas
      for (const std::string_view part : parts_of(given->template get_ref<const std::string&>()))
        names.emplace_back(part);
    } else {
      texts(key, names);
    }
    values.clear();
    values.reserve(names.size());
    std::vector<std::string_view> known;
    known.reserve(spellings<E>.size());
    for (const auto& [value, name] : spellings<E>) known.push_back(name);
    for (const std::string& name : names) {
      const auto found = std::find_if(spellings<E>.begin(), spellings<E>.end(),
                                      [&](const auto& one) { return one.second == name; });
      if (found == spellings<E>.end()) {
        report(key, "'" + name + "' is none of " + listed(known));
      } else {
        values.push_back(found->first);
      }
    }
  }

  // A list of objects, possibly empty.
  template <class T, class Fields>
  void list(std::string_view key, std::vector<T>& values, Fields fields) {
    values.resize(length(key));
    for (std::size_t i = 0; i < values.size(); ++i)
      read(document_, at_ / std::string(key) / i, values[i], fields);
  }

 private:
  ObjectReader(Document& document, const JsonPointer& at);
  void report_unknown_keys();
  const Json* find(std::string_view key, bool required);
  bool find_wanted(std::string_view key, std::vector<std::string>& absent);
  [[nodiscard]] bool is_overridden(std::string_view key) const;
  void report(std::string_view key, std::string rule);
  void report(const JsonPointer& at, std::string rule);
  std::size_t length(std::string_view key);
  static std::string listed(std::span<const std::string_view> names);

  void take(std::string_view key, std::int64_t& value, Range range);
  void take(std::string_view key, std::array<std::int64_t, 2>& values, Range range);
  void take_integer(const JsonPointer& at, const Json& json, std::int64_t& value, Range range);
  void take(std::string_view key, bool& value);
  void take(std::string_view key, std::string& value);
  void take_text(const JsonPointer& at, const Json& json, std::string& value);
  void take(std::string_view key, Bytes& value);
  void take(std::string_view key, Bytes& value, DeviceMemory kind);
  void take_bytes(std::string_view key, Bytes& value, Parsed<Bytes> (*parse)(std::string_view));
  void take(std::string_view key, Seconds& value);
  // Speeds and plain numbers are above zero: the time model divides by them.
  void take(std::string_view key, BytesPerSecond& value);
  void take(std::string_view key, FlopsPerSecond& value);
  void take(std::string_view key, Watts& value);
  void take(std::string_view key, double& value);
  template <class Q>
  void take_quantity(std::string_view key, Q& value, Parsed<Q> (*parse)(std::string_view),
                     std::string_view example);
  template <class E>
  void take(std::string_view key, E& value) {
    std::array<E, spellings<E>.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = spellings<E>[i].first;
    take(key, value, OneOf<E, all.size()>{all});
  }
  template <class E, std::size_t N>
  void take(std::string_view key, E& value, const OneOf<E, N>& allowed) {
    std::array<std::string_view, N> names;
    for (std::size_t i = 0; i < N; ++i) names[i] = name_of(allowed.values[i]);
    if (const auto chosen = choice(key, names)) value = allowed.values[*chosen];
  }
  std::optional<std::size_t> choice(std::string_view key, std::span<const std::string_view> names);

  Document& document_;
  JsonPointer at_;
  const Json* object_;  // null when there is none, which has been noted
  std::vector<std::string_view> known_;
  std::size_t mistakes_ = 0;  // noted of this object's own fields
};

}  // namespace headroom
