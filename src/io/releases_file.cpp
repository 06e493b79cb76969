#include "headroom/io/releases_file.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "command_files.hpp"
#include "file_formats.hpp"
#include "headroom/core/contains.hpp"
#include "headroom/core/joined.hpp"
#include "headroom/io/catalog.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"
#include "schema_writer.hpp"
#include "text.hpp"

namespace headroom {
namespace {

constexpr auto release_fields = [](auto& fields, auto& release) {
  fields.required("name", release.name);
  fields.optional_texts("tags", release.tags);
  fields.required("date", release.date);
  fields.optional("stack", release.stack);
  fields.optional_json("set", release.set);
  fields.required("source", release.source);
};

constexpr auto family_fields = [](auto& fields, auto& family) {
  fields.format(1);
  fields.required("source", family.source);
  fields.optional_texts("runs_of", family.runs_of);
  fields.list("releases", family.releases, release_fields);
};

// Returns whether a text is a month or a day of the calendar: "2026-04", "2026-04-16".
bool is_date(std::string_view text) {
  constexpr std::string_view day = "dddd-dd-dd";
  constexpr std::size_t month = 7;
  if (text.size() != day.size() && text.size() != month) return false;
  const bool written = std::equal(text.begin(), text.end(), day.begin(), [](char c, char pattern) {
    return pattern == 'd' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == pattern;
  });
  if (!written) return false;
  const auto number = [&](std::size_t from, std::size_t size) {
    return std::stoi(std::string(text.substr(from, size)));
  };
  const std::chrono::year_month_day date{
      std::chrono::year(number(0, 4)), std::chrono::month(static_cast<unsigned>(number(5, 2))),
      std::chrono::day(text.size() > month ? static_cast<unsigned>(number(8, 2)) : 1U)};
  return date.ok();
}

// Whether a text has a release's name by itself: "24.07" of "NeMo 24.07", not of "24.07.01" or "24.07/24.09".
bool has_name(std::string_view text, std::string_view name) {
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '/';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_of_name(text[at - 1])) && (end == text.size() || !is_of_name(text[end]))) return true;
  }
  return false;
}

bool is_day(std::string_view text) { return is_date(text) && text.size() > 7; }

std::string file_of(const StackFamily& family) { return "presets/releases/" + family.name + ".json"; }

void check(const StackFamily& family, Document& document) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < family.releases.size(); ++i) {
    const StackRelease& release = family.releases[i];
    const JsonPointer at = JsonPointer("/releases") / i;
    if (!is_day(release.date)) document.report(at / "date", "must be a day such as 2026-04-16");
    if (i > 0 && release.date < family.releases[i - 1].date)
      document.report(at / "date", "must not be earlier than the release before it");
    std::vector<std::string> own = release.tags;
    if (!contains(own, release.name)) own.push_back(release.name);
    for (const std::string& name : own) {
      if (!names.insert(name).second)
        document.report(at / "name", "is the name or tag of an earlier release");
    }
    if (i == 0 && release.stack.empty()) document.report(at / "stack", "is missing");
    if (!release.stack.empty() && find_embedded("software", release.stack) == nullptr) {
      document.report(at / "stack", "must be the name of an embedded software file" +
                                        did_you_mean(release.stack, embedded_names("software")));
    }
  }
  if (family.releases.empty()) document.report(JsonPointer("/releases"), "must list at least one release");
}

StackFamily family_of(Document& document) {
  StackFamily family;
  family.name = stem_of(document.file);
  ObjectReader::read(document, JsonPointer(), family, family_fields);
  check(family, document);
  document.finish();
  return family;
}

// Notes where each member of a change stands in the file.
void add_origins(const Json& change, const JsonPointer& at, const JsonPointer& from,
                 std::map<std::string, std::string>& origins) {
  for (const auto& [key, value] : change.items()) {
    origins[(at / key).to_string()] = (from / key).to_string();
    if (value.is_object()) add_origins(value, at / key, from / key, origins);
  }
}

std::string names_of(const StackFamily& family) {
  std::vector<std::string_view> names;
  names.reserve(family.releases.size());
  for (const StackRelease& release : family.releases) names.push_back(release.name);
  return joined(names);
}

}  // namespace

Document document_of(const StackFamily& family, std::size_t place) {
  std::size_t first = place;
  while (family.releases[first].stack.empty()) --first;
  const EmbeddedFile* const base = find_embedded("software", family.releases[first].stack);
  Document document = read_document(base->text, file_of(family));
  for (std::size_t i = first; i <= place; ++i) {
    if (family.releases[i].set.empty()) continue;
    const Json change = Json::parse(family.releases[i].set);
    add_origins(change, JsonPointer(), JsonPointer("/releases") / i / "set", document.origins);
    document.root.merge_patch(change);
  }
  const StackRelease& release = family.releases[place];
  document.root.erase("runs_of");  // which the base alone has
  document.root["released"] = release.date;
  document.root["source"] =
      fmt::format("{} {} ({}{}): {}", family.name, release.name,
                  release.tags.empty() ? "" : joined(release.tags) + ", ", release.date, release.source);
  return document;
}

StackFamily releases_of(Document document) {
  StackFamily family = family_of(document);
  for (std::size_t i = 0; i < family.releases.size(); ++i) {
    try {
      software_of(family, i);
    } catch (const InputError& error) {
      for (Problem problem : error.problems()) {
        if (problem.where.starts_with(file_of(family)))
          problem.where.replace(0, file_of(family).size(), document.file);
        document.problems.push_back(std::move(problem));
      }
    }
  }
  document.finish();
  return family;
}

nlohmann::ordered_json json_of(const StackFamily& family) {
  return ObjectWriter::write(family, family_fields);
}

nlohmann::ordered_json releases_schema() {
  nlohmann::ordered_json schema = SchemaWriter::write(StackFamily{}, family_fields);
  schema["properties"]["releases"]["items"]["properties"]["set"] = without_required(software_schema());
  return schema;
}

StackFamily parse_releases(std::string_view text, const std::string& file) {
  return releases_of(read_document(text, file));
}

std::string write_releases(const StackFamily& family) { return json_of(family).dump(2) + '\n'; }

StackFamily read_family(std::string_view name) {
  const EmbeddedFile* const file = find_embedded("release", name);
  if (file == nullptr) {
    throw InputError(printable(name), "is no family of releases: " + joined(embedded_names("release")));
  }
  Document document = read_document(file->text, std::string(file->path));
  return family_of(document);
}

std::vector<StackFamily> list_families() {
  std::vector<StackFamily> families;
  for (const std::string_view name : embedded_names("release")) families.push_back(read_family(name));
  return families;
}

std::size_t release_of(const StackFamily& family, std::string_view text) {
  const std::vector<StackRelease>& releases = family.releases;
  if (text.empty()) return releases.size() - 1;  // a family's name alone
  const auto named = std::find_if(releases.begin(), releases.end(), [&](const StackRelease& release) {
    return release.name == text ||
           std::find(release.tags.begin(), release.tags.end(), text) != release.tags.end();
  });
  if (named != releases.end()) return static_cast<std::size_t>(named - releases.begin());
  const std::string where = family.name + "@" + printable(text);
  if (!is_date(text)) {
    throw InputError(where, fmt::format("is no release of {}: {}; or a day such as {}", family.name,
                                        names_of(family), releases.back().date));
  }
  const std::string last = is_day(text) ? std::string(text) : std::string(text) + "-31";
  const auto later = std::find_if(releases.begin(), releases.end(),
                                  [&](const StackRelease& release) { return release.date > last; });
  if (later == releases.begin()) {
    throw InputError(where, fmt::format("is before the first release of {} that is known: {} of {}",
                                        family.name, releases.front().name, releases.front().date));
  }
  return static_cast<std::size_t>(later - releases.begin()) - 1;
}

std::optional<std::string> release_of_runs(const std::vector<StackFamily>& families,
                                           std::string_view software) {
  std::set<std::string> found;
  for (const StackFamily& family : families) {
    const bool meant = std::any_of(family.runs_of.begin(), family.runs_of.end(),
                                   [&](const std::string& words) { return has_words(software, words); });
    for (std::size_t i = 0; meant && i < family.releases.size(); ++i) {
      if (has_name(software, family.releases[i].name)) found.insert(name_of(family, i));
    }
  }
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

std::optional<NamedRelease> find_release(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  const FileKind kind = kind_of_file(text);
  if (kind == FileKind::regular || kind == FileKind::other) return std::nullopt;
  if (at == std::string::npos) {
    if (find_embedded("release", name) == nullptr) return std::nullopt;
    NamedRelease named{.family = read_family(name)};
    named.place = release_of(named.family, {});
    return named;
  }
  const NameMeaning meaning = meaning_of("release", name);
  if (meaning.names.size() != 1) {
    throw InputError(printable(text), fmt::format("'{}' is no family of releases: {}", printable(name),
                                                  joined(embedded_names("release"))));
  }
  if (at + 1 == text.size()) throw InputError(printable(text), "must name a release or a day behind the @");
  NamedRelease named{.family = read_family(meaning.names.front())};
  named.place = release_of(named.family, std::string_view(text).substr(at + 1));
  return named;
}

std::string name_of(const StackFamily& family, std::size_t place) {
  return family.name + "@" + family.releases[place].name;
}

Software software_of(const StackFamily& family, std::size_t place) {
  Software software = software_of(document_of(family, place));
  software.name = name_of(family, place);
  return software;
}

}  // namespace headroom
