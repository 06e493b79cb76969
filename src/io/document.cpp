#include "document.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "headroom/io/catalog.hpp"
#include "text.hpp"

namespace headroom {
namespace {

bool is_sourced(const Json& json) {
  return json.is_object() && json.contains("value") && json.contains("origin") && json.contains("source");
}

void apply_override(Document& document, std::string_view override, const std::string& name) {
  const std::size_t equals = override.find('=');
  const std::string_view key = override.substr(0, equals);
  const std::string flag = name + " " + printable(key);
  if (equals == std::string_view::npos || key.empty()) {
    document.problems.push_back({name + " " + printable(override), "must be KEY=VALUE, such as hidden=8192"});
    return;
  }
  if (first_non_text_byte(override)) {
    document.problems.push_back({flag, "must be text without control characters"});
    return;
  }
  if (static_cast<std::size_t>(std::count(key.begin(), key.end(), '.')) >= deepest_nesting) {
    document.problems.push_back({flag, fmt::format("is nested deeper than {} levels", deepest_nesting)});
    return;
  }
  Json* node = &document.root;
  JsonPointer field;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('.', start), key.size());
    const std::string part(key.substr(start, end - start));
    if (!node->is_object()) {
      document.problems.push_back(
          {flag, fmt::format("'{}' has no fields", printable(key.substr(0, start - 1)))});
      return;
    }
    field /= part;
    if (!node->contains(part)) {
      (*node)[part] = Json::object();
      document.overridden.emplace(field.to_string(), flag);
    }
    node = &(*node)[part];
    start = end + 1;
  }
  // What has an origin and a source, one figure or several, has both of whoever sets it, unless these are set too.
  if (is_sourced(*node)) {
    field /= "value";
    node = &(*node)["value"];
  }
  *node = scalar(override.substr(equals + 1));
  document.overridden.insert_or_assign(field.to_string(), flag);
  if (field.empty() || field.back() == "origin" || field.back() == "source") return;
  const JsonPointer whole = field.parent_pointer();
  const auto tell = [&](const char* member, std::string text) {
    if (!document.overridden.contains((whole / member).to_string()))
      document.root[whole][member] = std::move(text);
  };
  const Json& of = document.root[whole];
  if (!of.is_object() || !of.contains("origin") || !of.contains("source")) return;
  const std::string stated = name + " " + std::string(override);
  const bool one_figure = of.contains("value") || !of["source"].is_string();
  tell("source", one_figure ? stated : stated + "; else: " + of["source"].get<std::string>());
  tell("origin", "assumed");
}

// " (did you mean 'gpt3-13b' or 'gpt3-175b'?)" for gpt3: names that have a part which begins so, as h100 is one of
// dgx-h100-80g; or else the one nearest in spelling.
std::string name_hint(const std::string& source, std::string_view kind) {
  std::string word = stem_of(source);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::vector<std::string_view> names = embedded_names(kind);
  constexpr std::size_t least_part = 3;  // letters: shorter ones are parts of too much
  std::vector<std::string_view> longer;
  std::copy_if(names.begin(), names.end(), std::back_inserter(longer), [&](std::string_view name) {
    if (!word.empty() && name.starts_with(word)) return true;
    return word.size() >= least_part && name.find('-' + word) != std::string_view::npos;
  });
  if (longer.empty()) return did_you_mean(word, names);
  return fmt::format(" (did you mean '{}'?)", fmt::join(longer, "' or '"));
}

// Where to find a model of the Hugging Face hub, "owner/name", that is not compiled in.
std::string_view hub_hint(const std::string& source, std::string_view kind) {
  const bool of_hub = kind == "model" && std::count(source.begin(), source.end(), '/') == 1 &&
                      source.front() != '/' && source.front() != '.' && !source.ends_with(".json");
  return of_hub ? "; a model of the hub is read from its config.json, once that is downloaded" : "";
}

}  // namespace

void Document::report(const JsonPointer& field, std::string rule) {
  if (problems.size() > most_problems_listed) return;
  if (problems.size() == most_problems_listed) {
    problems.push_back({file, "has more problems than these"});
    return;
  }
  const std::string path = field.to_string();
  if (const auto flag = overridden.find(path); flag != overridden.end()) {
    problems.push_back({flag->second, std::move(rule)});
    return;
  }
  JsonPointer written = field;
  std::size_t longest = 0;
  for (const auto& [end, origin] : origins) {
    if (end.size() < longest || !path.ends_with(end)) continue;
    longest = end.size();
    written = JsonPointer(origin);
  }
  problems.push_back({field_of_file(file, written), std::move(rule)});
}

void Document::finish() const {
  if (!problems.empty()) throw InputError(problems);
}

Document read_document(std::string_view text, std::string file, std::size_t longest) {
  Document document{
      .file = std::move(file), .root = {}, .overridden = {}, .overrides = {}, .origins = {}, .problems = {}};
  document.root = parse_json(text, document.file, document.problems, longest);
  return document;
}

void apply_overrides(Document& document, const std::vector<std::string>& overrides, std::string_view flag) {
  if (!document.root.is_object()) return;  // reported when it is read
  const std::string name(flag);
  std::vector<std::string_view> keys;
  for (const std::string_view override : overrides) {
    const std::string_view key = override.substr(0, override.find('='));
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      document.problems.push_back({name + " " + printable(key), "is given twice"});
      continue;
    }
    keys.push_back(key);
    document.overrides.push_back(name + " " + std::string(override));
    apply_override(document, override, name);
  }
}

void lay_over_base(Document& document, std::string_view kind) {
  if (!document.root.is_object() || !document.root.contains("base")) return;
  const Json name = std::move(document.root["base"]);
  document.root.erase("base");
  if (!document.root.contains("source")) document.report(JsonPointer("/source"), "is missing");
  const std::string text = name.is_string() ? name.get<std::string>() : name.dump();
  const EmbeddedFile* file = find_embedded(kind, text);
  if (file == nullptr) {
    return document.report(JsonPointer("/base"), fmt::format("'{}' is not the name of a {}{}",
                                                             printable(text), kind, name_hint(text, kind)));
  }
  Document base = read_document(file->text, std::string(file->path));
  lay_over_base(base, kind);
  base.root.erase("runs_of");  // which is said of one system only
  base.root.merge_patch(document.root);
  document.root = std::move(base.root);
}

std::string described_overrides(const Document& document) {
  std::string text;
  for (const std::string& override : document.overrides) text += "; " + override;
  return text;
}

std::vector<std::string> value_names(const nlohmann::ordered_json& file) {
  std::vector<std::string> names;
  for (const auto& [key, value] : file.items()) {
    if (key == "format" || key == "origin" || key == "source" || value.is_array()) continue;
    if (!value.is_object()) {
      names.push_back(key);
      continue;
    }
    for (const std::string& name : value_names(value)) names.push_back(key + "." + name);
  }
  return names;
}

std::string stem_of(const std::string& file) {
  constexpr std::size_t longest = 200;
  return printable(std::filesystem::path(file).stem().string(), longest);
}

Document open_document(const std::string& source, std::string_view kind) {
  std::error_code error;
  const auto status = std::filesystem::status(source, error);
  const EmbeddedFile* embedded = find_embedded(kind, source);
  const bool directory = std::filesystem::is_directory(status);
  if (std::filesystem::exists(status) && !(directory && embedded != nullptr)) {
    return read_document(read_file(source), source);
  }
  if (embedded != nullptr) return read_document(embedded->text, std::string(embedded->path));
  if (status.type() == std::filesystem::file_type::none) {
    throw InputError(printable(source), "cannot be read: " + error.message());
  }
  throw InputError(source.empty() ? "\"\"" : printable(source, 200),
                   fmt::format("is neither a file nor the name of a {}{}{}", kind, name_hint(source, kind),
                               hub_hint(source, kind)));
}

}  // namespace headroom
