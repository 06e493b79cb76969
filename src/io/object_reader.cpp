#include "object_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "headroom/core/contains.hpp"
#include "headroom/core/error.hpp"
#include "headroom/io/quantity.hpp"
#include "other_keys.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// A key of files that were written before it had another name, and what its values are now.
struct RenamedKey {
  std::string_view old_name;
  std::string_view name;
  std::string_view values;
};
constexpr std::array renamed_keys{RenamedKey{"distributed_optimizer", "data_sharding",
                                             R"("zero1" where it was true, "none" where it was false)"}};

constexpr double exact_bytes_end = 9007199254740992.0;  // 2^53, from where on a double skips integers

std::string found(const Json& value) {
  if (value.is_object()) return " (found an object)";
  if (value.is_array()) return " (found a list)";
  if (value.is_string())
    return fmt::format(" (found \"{}\")", printable(value.get_ref<const std::string&>()));
  return fmt::format(" (found {})", value.dump());
}

struct Elsewhere {
  std::string name;  // with dots
  double alike = 0;  // how much of the two names begins alike
};

void find_elsewhere(const Json& object, const std::string& key, const std::string& path,
                    std::vector<Elsewhere>& found) {
  constexpr double half = 0.5;
  for (const auto& [name, value] : object.items()) {
    const auto same = std::mismatch(name.begin(), name.end(), key.begin(), key.end()).first - name.begin();
    const double alike = static_cast<double>(same) / static_cast<double>(std::max(name.size(), key.size()));
    const std::string dotted = path.empty() ? name : path + "." + name;
    if (alike > half) found.push_back({dotted, alike});
    if (value.is_object()) find_elsewhere(value, key, dotted, found);
  }
}

// A key of the same object that other programs call so, or that is spelled alike, or else those anywhere else in the file that begin most alike.
std::string hint_of_key(const std::string& key, const std::vector<std::string_view>& known,
                        const JsonPointer& at, Json root) {
  const std::string_view called = key_called(key);
  if (contains(known, called.substr(0, called.find('.'))))
    return fmt::format(" (did you mean '{}'?)", called);
  if (std::string hint = did_you_mean(key, known); !hint.empty()) return hint;
  root[at].erase(key);
  std::vector<Elsewhere> all;
  find_elsewhere(root, key, "", all);
  double most = 0;
  for (const Elsewhere& it : all) most = std::max(most, it.alike);
  std::vector<std::string> names;
  for (const Elsewhere& it : all) {
    if (it.alike == most) names.push_back(it.name);
  }
  if (names.empty()) return {};
  // Those of an outer object are meant more often.
  constexpr std::size_t most_named = 2;
  std::stable_sort(names.begin(), names.end(), [](const std::string& x, const std::string& y) {
    return std::count(x.begin(), x.end(), '.') < std::count(y.begin(), y.end(), '.');
  });
  names.resize(std::min(names.size(), most_named));
  return fmt::format(" (did you mean '{}'?)", fmt::join(names, "' or '"));
}

}  // namespace

ObjectReader::ObjectReader(Document& document, const JsonPointer& at)
    : document_(document), at_(at), object_(&document.root.at(at)) {
  if (object_->is_object()) return;
  document_.report(at_, "must be an object" + found(*object_));
  object_ = nullptr;
}

bool ObjectReader::is_overridden(std::string_view key) const {
  return document_.overridden.contains((at_ / std::string(key)).to_string());
}

const Json* ObjectReader::find(std::string_view key, bool required) {
  known_.push_back(key);
  const auto member = object_->find(key);
  if (member != object_->end()) return &*member;
  if (required) report(key, "is missing");
  return nullptr;
}

bool ObjectReader::find_wanted(std::string_view key, std::vector<std::string>& absent) {
  if (find(key, /*required=*/false) != nullptr) return true;
  std::string place = (at_ / std::string(key)).to_string().substr(1);
  std::replace(place.begin(), place.end(), '/', '.');
  absent.push_back(std::move(place));
  return false;
}

void ObjectReader::report(std::string_view key, std::string rule) {
  report(at_ / std::string(key), std::move(rule));
}

void ObjectReader::report(const JsonPointer& at, std::string rule) {
  ++mistakes_;
  document_.report(at, std::move(rule));
}

void ObjectReader::format(std::int64_t version) {
  const Json* value = find("format", /*required=*/true);
  if (value != nullptr && (!value->is_number_integer() || *value != version)) {
    report("format", fmt::format("must be {}, the only format known{}", version, found(*value)));
  }
}

std::size_t ObjectReader::length(std::string_view key) {
  const Json* value = find(key, /*required=*/true);
  if (value == nullptr) return 0;
  if (!value->is_array()) {
    report(key, "must be a list" + found(*value));
  } else if (value->size() > longest_list) {
    report(key, fmt::format("must be a list of at most {} (found {})", longest_list, value->size()));
  } else {
    return value->size();
  }
  return 0;
}

void ObjectReader::take(std::string_view key, std::int64_t& value, Range range) {
  take_integer(at_ / std::string(key), object_->at(key), value, range);
}

void ObjectReader::take(std::string_view key, std::array<std::int64_t, 2>& values, Range range) {
  const Json& json = object_->at(key);
  if (!json.is_array() || json.size() != values.size()) {
    return report(key, fmt::format("must be a list of {} integers{}", values.size(), found(json)));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    take_integer(at_ / std::string(key) / i, json[i], values[i], range);
  }
}

void ObjectReader::take_integer(const JsonPointer& at, const Json& json, std::int64_t& value, Range range) {
  // Unsigned is asked first: nlohmann keeps 2^63 and more that way, and would convert it to a negative
  // number.
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(range.most)
                        : json.is_number_integer() && json.get<std::int64_t>() <= range.most;
  if (fits && json.get<std::int64_t>() >= range.least) {
    value = json.get<std::int64_t>();
  } else {
    report(at, fmt::format("must be an integer from {} to {}{}", range.least, range.most, found(json)));
  }
}

void ObjectReader::take(std::string_view key, bool& value) {
  const Json& json = object_->at(key);
  if (json.is_boolean()) {
    value = json.get<bool>();
  } else {
    report(key, "must be true or false" + found(json));
  }
}

void ObjectReader::take(std::string_view key, std::string& value) {
  take_text(at_ / std::string(key), object_->at(key), value);
}

void ObjectReader::take_text(const JsonPointer& at, const Json& json, std::string& value) {
  const auto wrong = [&](std::string rule) { report(at, std::move(rule)); };
  if (!json.is_string()) return wrong("must be text" + found(json));
  const auto& text = json.get_ref<const std::string&>();
  if (text.find_first_not_of(' ') == std::string::npos) return wrong("must not be empty");
  if (text.size() > longest_text_bytes) {
    return wrong(fmt::format("must be at most {} bytes of text{}", longest_text_bytes, found(json)));
  }
  if (printable(text, longest_text_bytes) != text) {
    return wrong("must be text without control characters" + found(json));
  }
  value = text;
}

void ObjectReader::texts(std::string_view key, std::vector<std::string>& values) {
  values.resize(length(key));
  for (std::size_t i = 0; i < values.size(); ++i)
    take_text(at_ / std::string(key) / i, object_->at(key)[i], values[i]);
}

void ObjectReader::optional_texts(std::string_view key, std::vector<std::string>& values) {
  if (find(key, /*required=*/false) != nullptr) texts(key, values);
}

void ObjectReader::optional_json(std::string_view key, std::string& text) {
  const Json* const object = find(key, /*required=*/false);
  if (object == nullptr) return;
  if (!object->is_object()) return report(key, "must be an object" + found(*object));
  text = object->dump();
}

void ObjectReader::take(std::string_view key, Bytes& value) { take_bytes(key, value, parse_bytes); }

void ObjectReader::take(std::string_view key, Bytes& value, DeviceMemory) {
  take_bytes(key, value, parse_device_memory);
}

void ObjectReader::take_bytes(std::string_view key, Bytes& value, Parsed<Bytes> (*parse)(std::string_view)) {
  const Json& json = object_->at(key);
  if (!json.is_string()) return report(key, "must be text with a unit, such as \"80 GiB\"" + found(json));
  const Parsed<Bytes> parsed = parse(json.get_ref<const std::string&>());
  if (const auto* rule = std::get_if<std::string>(&parsed)) return report(key, *rule);
  const Bytes bytes(std::round(std::get<Bytes>(parsed).count()));  // 75.6 GiB is none without
  if (bytes.count() < 1 || bytes.count() >= exact_bytes_end)
    return report(key, "must be at least 1 byte and below 2^53" + found(json));
  value = bytes;
}

template <class Q>
void ObjectReader::take_quantity(std::string_view key, Q& value, Parsed<Q> (*parse)(std::string_view),
                                 std::string_view example) {
  const Json& json = object_->at(key);
  if (!json.is_string()) {
    return report(key, fmt::format("must be text with a unit, such as \"{}\"{}", example, found(json)));
  }
  const Parsed<Q> parsed = parse(json.get_ref<const std::string&>());
  if (const auto* rule = std::get_if<std::string>(&parsed)) return report(key, *rule);
  if constexpr (!std::is_same_v<Q, Seconds>) {
    if (std::get<Q>(parsed) == Q(0)) return report(key, "must be above zero" + found(json));
  }
  value = std::get<Q>(parsed);
}

void ObjectReader::take(std::string_view key, Seconds& value) {
  take_quantity(key, value, parse_seconds, "10 us");
}

void ObjectReader::take(std::string_view key, BytesPerSecond& value) {
  take_quantity(key, value, parse_bytes_per_second, "300 GB/s");
}

void ObjectReader::take(std::string_view key, FlopsPerSecond& value) {
  take_quantity(key, value, parse_flops_per_second, "312 TFLOP/s");
}

void ObjectReader::take(std::string_view key, Watts& value) {
  take_quantity(key, value, parse_watts, "700 W");
}

void ObjectReader::take(std::string_view key, double& value) {
  const Json& json = object_->at(key);
  const double number = json.is_number() ? json.get<double>() : 0;
  if (!(number > 0) || !std::isfinite(number))
    return report(key, "must be a number above zero" + found(json));
  value = number;
}

std::optional<std::size_t> ObjectReader::choice(std::string_view key,
                                                std::span<const std::string_view> names) {
  const Json& json = object_->at(key);
  std::string hint;
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    const auto name = std::find(names.begin(), names.end(), text);
    if (name != names.end()) return static_cast<std::size_t>(name - names.begin());
    hint = did_you_mean(text, {names.begin(), names.end()});
  }
  report(key, fmt::format("must be {}{}{}", fmt::join(names, " or "), found(json), hint));
  return std::nullopt;
}

std::string ObjectReader::listed(std::span<const std::string_view> names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

void ObjectReader::report_unknown_keys() {
  for (const auto& member : object_->items()) {
    const std::string& key = member.key();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const auto renamed =
        std::find_if(std::begin(renamed_keys), std::end(renamed_keys), [&](const RenamedKey& it) {
          return it.old_name == key && std::find(known_.begin(), known_.end(), it.name) != known_.end();
        });
    report(key, renamed == std::end(renamed_keys)
                    ? "unknown key" + hint_of_key(key, known_, at_, document_.root)
                    : fmt::format("is {} now: {}", renamed->name, renamed->values));
  }
}

}  // namespace headroom
