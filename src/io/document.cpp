#include "document.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "command_files.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/releases_file.hpp"
#include "text.hpp"

namespace headroom {
namespace {

bool is_sourced(const Json& json) {
  return json.is_object() && json.contains("value") && json.contains("origin") && json.contains("source");
}

void apply_override(Document& document, std::string_view override, const std::string& name) {
  const std::size_t equals = override.find('=');
  const std::string_view key = override.substr(0, equals);
  constexpr std::size_t longest_key = 200;
  const std::string flag = name + " " + printable(key, longest_key);
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

std::string quoted_choice(const std::vector<std::string_view>& names) {
  constexpr std::size_t most_named = 10;
  if (names.size() <= most_named) return "'" + joined(names, "' or '") + "'";
  return "'" + joined(std::vector(names.begin(), names.begin() + most_named), "', '") + "', ...";
}

// Whether it may be a model of the hub, "owner/name".
bool is_of_hub(const std::string& source, std::string_view kind) {
  return kind == "model" && std::count(source.begin(), source.end(), '/') == 1 && source.front() != '/' &&
         source.front() != '.' && !source.ends_with(".json");
}

// What else a name could be: " (did you mean 'gpt3-175b'?)" of a plain one or a path.
std::string name_hint(const std::string& source, std::string_view kind) {
  constexpr std::string_view suffix = ".json";
  std::string name = source.substr(source.rfind('/') + 1);
  if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
  const std::vector<std::string_view> near = names_near(kind, name);
  if (is_of_hub(source, kind)) {
    const std::string others =
        near.empty() ? "" : " (nearest by name, maybe of another shape: " + quoted_choice(near) + ")";
    return others + "; a model of the hub is read from its config.json, once that is downloaded";
  }
  if (near.empty())
    return fmt::format(" (see: headroom list {})", kind == "software" ? "software" : std::string(kind) + "s");
  return " (did you mean " + quoted_choice(near) + "?)";
}

// A file wins over a name, a name over a folder.
bool is_name(FileKind kind, const NameMeaning& meaning) {
  if (kind == FileKind::none) return true;
  return kind == FileKind::folder && !meaning.names.empty();
}

// Why nobody can tell whether there is a file of this name, such as one that is too long. Empty if that is no question.
std::string obstacle_to(const std::string& source) {
  std::error_code error;
  if (!command_files().has_disk()) return {};
  const auto status = std::filesystem::status(source, error);
  return status.type() == std::filesystem::file_type::none ? error.message() : std::string();
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

std::string names_nothing(const std::string& source, std::string_view kind) {
  if (kind_of_file(source) != FileKind::none) return {};
  const NameMeaning meaning = meaning_of(kind, source);
  if (meaning.names.size() == 1) return {};
  if (kind == "software" && find_release(source)) return {};
  if (!meaning.names.empty()) {
    return fmt::format("may be {}{}: name one of them", quoted_choice(meaning.names),
                       meaning.because.empty() ? "" : fmt::format(" ({})", meaning.because));
  }
  return fmt::format("is neither a file nor the name of a {}{}", kind == "software" ? "training stack" : kind,
                     name_hint(source, kind));
}

Document open_document(const std::string& source, std::string_view kind) {
  const NameMeaning meaning = meaning_of(kind, source);
  if (!is_name(kind_of_file(source), meaning)) return read_document(read_file(source), source);
  if (meaning.names.size() == 1) {
    const EmbeddedFile& file = *find_embedded(kind, meaning.names.front());
    return read_document(file.text, std::string(file.path));
  }
  if (const std::string obstacle = obstacle_to(source); !obstacle.empty())
    throw InputError(printable(source), "cannot be read: " + obstacle);
  throw InputError(source.empty() ? "\"\"" : printable(source, 200), names_nothing(source, kind));
}

bool is_file(const std::string& source, std::string_view kind) {
  return !is_name(kind_of_file(source), meaning_of(kind, source));
}

std::string how_read(const std::string& source, std::string_view kind) {
  if (is_file(source, kind)) return {};
  const NameMeaning meaning = meaning_of(kind, source);
  if (meaning.names.size() != 1 || meaning.names.front() == source) return {};
  return fmt::format("{} is read as {}{}{}", printable(source, 200), meaning.names.front(),
                     meaning.because.empty() ? "" : ": ", meaning.because);
}

}  // namespace headroom
