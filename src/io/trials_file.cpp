#include "headroom/io/trials_file.hpp"

#include <utility>

#include <fmt/format.h>

#include "document.hpp"
#include "file_formats.hpp"
#include "object_reader.hpp"
#include "schema_writer.hpp"

namespace headroom {
namespace {

struct WrittenTrials {
  std::vector<TrialRow> rows;
};

constexpr auto trial_fields = [](auto& fields, auto& row) {
  fields.required("flags", row.flags);
  fields.optional("iteration_seconds", row.iteration_seconds);
  fields.optional("out_of_memory", row.out_of_memory);
};

constexpr auto trials_fields = [](auto& fields, auto& it) {
  fields.format(1);
  fields.list("trials", it.rows, trial_fields);
};

// A time that is null has not been measured yet.
void drop_unmeasured(Json& root) {
  if (!root.is_object() || !root.contains("trials") || !root["trials"].is_array()) return;
  for (Json& row : root["trials"]) {
    if (row.is_object() && row.contains("iteration_seconds") && row["iteration_seconds"].is_null())
      row.erase("iteration_seconds");
  }
}

}  // namespace

std::vector<TrialRow> parse_trials(std::string_view text, const std::string& file) {
  Document document = read_document(text, file);
  drop_unmeasured(document.root);
  WrittenTrials trials;
  ObjectReader::read(document, JsonPointer(), trials, trials_fields);
  for (std::size_t i = 0; i < trials.rows.size(); ++i) {
    if (trials.rows[i].iteration_seconds && trials.rows[i].out_of_memory)
      document.report(JsonPointer("/trials") / i, "has a time, although it ran out of memory");
  }
  document.finish();
  return std::move(trials.rows);
}

std::string trials_text(const std::vector<TrialRow>& rows) {
  nlohmann::ordered_json json{{"format", 1}, {"trials", nlohmann::ordered_json::array()}};
  for (const TrialRow& row : rows) {
    nlohmann::ordered_json one{{"flags", row.flags}, {"iteration_seconds", nullptr}};
    if (row.iteration_seconds) one["iteration_seconds"] = *row.iteration_seconds;
    if (row.out_of_memory) one["out_of_memory"] = true;
    json["trials"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

bool looks_like_runs(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != std::string_view::npos && text[first] == '[';
}

nlohmann::ordered_json trials_schema() {
  nlohmann::ordered_json schema = SchemaWriter::write(WrittenTrials{}, trials_fields);
  schema["properties"]["trials"]["items"]["properties"]["iteration_seconds"]["type"] = {"number", "null"};
  return schema;
}

}  // namespace headroom
