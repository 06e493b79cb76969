#include "io/row_reader.hpp"

#include "io/text.hpp"

namespace headroom {

RowReader::RowReader(const std::string& text, std::string where) : where_(std::move(where)) {
  std::vector<Problem> problems;
  json_ = parse_json(text, where_, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  if (!json_.is_object()) throw InputError(where_, "must be an object");
}

std::optional<Json> RowReader::take_object(std::string_view key) {
  return take(key, "must be an object", [](const Json& json) { return json.is_object(); });
}

std::optional<double> RowReader::take_number(std::string_view key) {
  const auto number = take(key, "must be a number", [](const Json& json) { return json.is_number(); });
  return number ? std::optional(number->get<double>()) : std::nullopt;
}

std::optional<std::string> RowReader::take_text(std::string_view key) {
  const auto text = take(key, "must be text without control characters", [](const Json& json) {
    return json.is_string() && printable(json.get_ref<const std::string&>(), std::string::npos) ==
                                   json.get_ref<const std::string&>();
  });
  return text ? std::optional(text->get<std::string>()) : std::nullopt;
}

void RowReader::finish() const {
  if (!json_.empty()) throw InputError(where_ + ": /" + json_.begin().key(), "unknown key");
}

std::optional<Json> RowReader::take(std::string_view key, const char* rule, bool (*allows)(const Json&)) {
  const auto member = json_.find(key);
  if (member == json_.end()) return std::nullopt;
  if (!allows(*member)) throw InputError(where_ + ": /" + std::string(key), rule);
  Json value = std::move(*member);
  json_.erase(member);
  return value;
}

}  // namespace headroom
