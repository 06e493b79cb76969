#include "headroom/io/source_file.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "file_formats.hpp"
#include "headroom/io/catalog.hpp"
#include "headroom/io/software_file.hpp"
#include "headroom/io/system_file.hpp"
#include "object_reader.hpp"
#include "object_writer.hpp"
#include "schema_writer.hpp"
#include "settings_fields.hpp"
#include "text.hpp"

namespace headroom {
namespace {

// Targets as files write them.
struct WrittenSource {
  PublishedSource source;
  std::vector<SourceTarget> targets;  // in percent
};

constexpr auto variant_fields = [](auto& fields, auto& variant) {
  fields.optional("dtype", variant.dtype);
  fields.optional("overlap", variant.overlap);
  fields.required_object("settings", variant.settings, run_settings_fields);
};

constexpr auto source_target_fields = [](auto& fields, auto& target) {
  fields.required("quantity", target.measure,
                  OneOf{Measure::iteration_seconds, Measure::allocated_bytes, Measure::reserved_bytes,
                        Measure::device_bytes});
  fields.optional("median_percent", target.median);
  fields.optional("worst_percent", target.worst);
};

constexpr auto published_source_fields = [](auto& fields, auto& it) {
  fields.format(1);
  fields.required("label", it.source.label);
  fields.required("source", it.source.source);
  fields.texts("titles", it.source.titles);
  fields.optional("system", it.source.system);
  fields.required("software", it.source.software);
  fields.object("settings", it.source.settings, run_settings_fields);
  fields.list("variants", it.source.variants, variant_fields);
  fields.list("targets", it.targets, source_target_fields);
};

constexpr double whole_percent = 100;

void report_unknown_names(Document& document, const PublishedSource& source) {
  const auto named = [&](const char* field, const std::string& name, std::string_view kind) {
    if (name.empty() || find_embedded(kind, name) != nullptr) return;
    document.report(JsonPointer(field), "must be the name of an embedded " + std::string(kind) + " file" +
                                            did_you_mean(name, embedded_names(kind)));
  };
  named("/system", source.system.value_or(""), "system");
  named("/software", source.software, "software");
}

void report_idle_members(Document& document, const WrittenSource& written) {
  for (std::size_t i = 0; i < written.source.variants.size(); ++i) {
    const SettingsVariant& variant = written.source.variants[i];
    if (!variant.dtype && !variant.overlap)
      document.report(JsonPointer("/variants") / i, "must give the dtype or the overlap of its rows");
  }
  std::set<Measure> judged;
  for (std::size_t i = 0; i < written.targets.size(); ++i) {
    const SourceTarget& target = written.targets[i];
    if (!target.median && !target.worst)
      document.report(JsonPointer("/targets") / i, "must give median_percent or worst_percent");
    if (!judged.insert(target.measure).second)
      document.report(JsonPointer("/targets") / i / "quantity", "has a target already");
  }
}

// Empty where none lists the title.
std::string key_by_title(const std::string& title, const std::vector<PublishedSource>& sources) {
  for (const PublishedSource& source : sources) {
    if (std::find(source.titles.begin(), source.titles.end(), title) != source.titles.end())
      return source.key;
  }
  return {};
}

}  // namespace

PublishedSource source_of(Document document) {
  WrittenSource written;
  written.source.key = stem_of(document.file);
  ObjectReader::read(document, JsonPointer(), written, published_source_fields);
  report_unknown_names(document, written.source);
  report_idle_members(document, written);
  document.finish();
  for (SourceTarget& target : written.targets) {
    if (target.median) *target.median /= whole_percent;
    if (target.worst) *target.worst /= whole_percent;
  }
  written.source.targets = std::move(written.targets);
  return std::move(written.source);
}

nlohmann::ordered_json json_of(const PublishedSource& source) {
  WrittenSource written{.source = source, .targets = source.targets};
  for (SourceTarget& target : written.targets) {
    if (target.median) *target.median *= whole_percent;
    if (target.worst) *target.worst *= whole_percent;
  }
  return ObjectWriter::write(written, published_source_fields);
}

nlohmann::ordered_json source_schema() {
  nlohmann::ordered_json schema = SchemaWriter::write(WrittenSource{}, published_source_fields);
  const auto any_of = [&](const char* list, const char* one, const char* other) {
    schema["properties"][list]["items"]["anyOf"] = {{{"required", {one}}}, {{"required", {other}}}};
  };
  any_of("variants", "dtype", "overlap");
  any_of("targets", "median_percent", "worst_percent");
  return schema;
}

PublishedSource parse_source(std::string_view text, const std::string& file) {
  return source_of(read_document(text, file));
}

std::string write_source(const PublishedSource& source) { return json_of(source).dump(2) + '\n'; }

PublishedSource read_source(std::string_view key) {
  const EmbeddedFile* file = find_embedded("source", key);
  if (file == nullptr) throw InputError("source", "'" + printable(key) + "' " + unknown_source(key));
  return parse_source(file->text, std::string(file->path));
}

std::vector<PublishedSource> list_sources() {
  std::vector<PublishedSource> all;
  for (const std::string_view key : embedded_names("source")) all.push_back(read_source(key));
  return all;
}

std::string unknown_source(std::string_view key) {
  if (find_embedded("source", key) != nullptr) return {};
  return "names no published source (see: headroom list sources)" +
         did_you_mean(key, embedded_names("source"));
}

void set_keys_by_title(std::vector<MeasuredRun>& runs) {
  const std::vector<PublishedSource> sources = list_sources();
  for (MeasuredRun& run : runs) {
    if (run.key.empty()) run.key = key_by_title(run.source, sources);
  }
}

std::vector<SkippedRun> take_keys_by_title(std::vector<MeasuredRun>& runs) {
  set_keys_by_title(runs);
  std::vector<SkippedRun> skipped;
  std::vector<MeasuredRun> kept;
  for (MeasuredRun& run : runs) {
    if (run.key.empty()) {
      skipped.push_back({label_of(run, nullptr), run.name, {"no published source lists its title"}});
    } else {
      kept.push_back(std::move(run));
    }
  }
  runs = std::move(kept);
  return skipped;
}

std::size_t listed_by_title(const std::vector<MeasuredRun>& runs) {
  const std::vector<PublishedSource> sources = list_sources();
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), [&](const MeasuredRun& run) {
    return run.key.empty() && !key_by_title(run.source, sources).empty();
  }));
}

}  // namespace headroom
