#include "headroom/report/sweep.hpp"

#include <algorithm>
#include <array>

#include "io/strict_json.hpp"
#include "report/json.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

struct FigureColumn {
  std::string_view key;     // in JSON and CSV, with the unit
  std::string_view header;  // for reading
  std::optional<double> SweepFigures::*figure;
  std::string (*text)(double);  // for reading
};

std::string seconds_text(double value) { return fmt::format("{:#.4g}", value); }
std::string percent_text(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string gib_text(double value) { return in_gib(Bytes(value)); }

constexpr std::array<FigureColumn, 11> figure_columns{{
    {"devices", "devices", &SweepFigures::devices, whole},
    {"peak_rank", "fullest rank", &SweepFigures::peak_rank, whole},
    {"peak_bytes", "peak GiB", &SweepFigures::peak_bytes, gib_text},
    {"headroom_bytes", "to spare", &SweepFigures::headroom_bytes, gib_text},
    {"iteration_seconds", "seconds", &SweepFigures::iteration_seconds, seconds_text},
    {"mfu", "MFU", &SweepFigures::mfu, percent_text},
    {"hfu", "HFU", &SweepFigures::hfu, percent_text},
    {"tokens_per_second", "tokens/s", &SweepFigures::tokens_per_second, whole},
    {"tokens_per_second_per_device", "a device", &SweepFigures::tokens_per_second_per_device, whole},
    {"evaluated", "evaluated", &SweepFigures::evaluated, whole},
    {"feasible", "feasible", &SweepFigures::feasible, whole},
}};

// A search counts strategies. A figure that is varied, as devices may be, has its column already.
std::vector<FigureColumn> figures_of(const SweepHead& head) {
  const std::vector<std::string> varied = fields_of(head.grid);
  std::vector<FigureColumn> columns(figure_columns.begin(), figure_columns.end());
  std::erase_if(columns, [&](const FigureColumn& column) {
    const bool counts = column.figure == &SweepFigures::evaluated || column.figure == &SweepFigures::feasible;
    return (counts && head.kind != SweepKind::plan) ||
           std::find(varied.begin(), varied.end(), column.key) != varied.end();
  });
  return columns;
}

std::vector<Column> columns_of(const SweepHead& head, bool for_reading) {
  std::vector<Column> columns;
  for (const Axis& axis : head.grid.axes) {
    for (std::size_t i = 0; i < axis.fields.size(); ++i) {
      const bool counted = scalar(axis.steps.front()[i]).is_number();
      columns.push_back({axis.fields[i], counted ? Align::right : Align::left});
    }
  }
  columns.push_back({"verdict", Align::left});
  for (const FigureColumn& column : figures_of(head)) {
    columns.push_back({std::string(for_reading ? column.header : column.key)});
  }
  if (head.kind == SweepKind::plan) columns.push_back({"strategy", Align::left});
  columns.push_back({"problem", Align::left});
  return columns;
}

std::string base_units(double value) { return number(value).dump(); }

std::vector<std::string> cells_of(const SweepHead& head, std::int64_t point, const SweepRow& row,
                                  bool for_reading) {
  std::vector<std::string> cells = point_of(head.grid, point);
  cells.emplace_back(row.verdict ? name_of(*row.verdict) : "");
  for (const FigureColumn& column : figures_of(head)) {
    const std::optional<double>& figure = row.figures.*column.figure;
    cells.push_back(!figure ? "" : for_reading ? column.text(*figure) : base_units(*figure));
  }
  if (head.kind == SweepKind::plan) cells.push_back(row.strategy);
  cells.push_back(row.problem);
  return cells;
}

OrderedJson values_json(const SweepHead& head, std::int64_t point) {
  const std::vector<std::string> fields = fields_of(head.grid);
  const std::vector<std::string> values = point_of(head.grid, point);
  OrderedJson json = OrderedJson::object();
  for (std::size_t i = 0; i < fields.size(); ++i) json[fields[i]] = scalar(values[i]);
  return json;
}

OrderedJson head_json(const SweepHead& head) {
  OrderedJson axes = OrderedJson::array();
  for (const Axis& axis : head.grid.axes) {
    OrderedJson fields = OrderedJson::array();
    for (std::size_t i = 0; i < axis.fields.size(); ++i) {
      OrderedJson values = OrderedJson::array();
      for (const std::vector<std::string>& step : axis.steps) values.emplace_back(scalar(step[i]));
      fields.push_back({{"field", axis.fields[i]}, {"values", std::move(values)}});
    }
    axes.push_back(std::move(fields));
  }
  OrderedJson json{{"format", 1},
                   {"kind", head.kind == SweepKind::plan ? "plan" : "estimate"},
                   {"arguments", head.arguments},
                   {"axes", std::move(axes)},
                   {"points", point_count(head.grid)}};
  if (head.model) json["model"] = to_json(*head.model);
  if (head.system) json["system"] = to_json(*head.system);
  if (head.software) json["software"] = to_json(*head.software);
  return json;
}

// Reads the members of a row, each of which may be left out.
class RowReader {
 public:
  RowReader(const std::string& text, const std::string& where) : where_(where) {
    std::vector<Problem> problems;
    json_ = parse_json(text, where, problems);
    if (!problems.empty()) throw InputError(std::move(problems));
    if (!json_.is_object()) throw InputError(where, "must be an object");
  }

  std::optional<Json> take(std::string_view key, const char* rule, bool (*allows)(const Json&)) {
    const auto member = json_.find(key);
    if (member == json_.end()) return std::nullopt;
    if (!allows(*member)) throw InputError(where_ + ": /" + std::string(key), rule);
    Json value = std::move(*member);
    json_.erase(member);
    return value;
  }

  std::string take_text(std::string_view key) {
    const auto text = take(key, "must be text", [](const Json& json) { return json.is_string(); });
    return text ? text->get<std::string>() : std::string();
  }

  void finish() const {
    if (!json_.empty()) throw InputError(where_ + ": /" + json_.begin().key(), "unknown key");
  }

 private:
  const std::string& where_;
  Json json_;
};

}  // namespace

bool fits(const SweepRow& row) { return row.verdict && *row.verdict != Verdict::does_not_fit; }

SweepRow row_of(const Evaluation& evaluation) {
  const Plan& plan = account(evaluation);
  SweepRow row{.verdict = plan.verdict,
               .strategy = {},
               .figures = {.devices = static_cast<double>(devices(plan.request.strategy)),
                           .peak_rank = static_cast<double>(plan.peak_rank),
                           .peak_bytes = peak(plan).count(),
                           .headroom_bytes = headroom_of(plan).count()},
               .problem = {}};
  if (plan.timing) {
    const Throughput& rates = plan.timing->throughput;
    row.figures.iteration_seconds = plan.timing->iteration.total.count();
    row.figures.mfu = rates.mfu;
    row.figures.hfu = rates.hfu;
    row.figures.tokens_per_second = rates.tokens_per_second;
    row.figures.tokens_per_second_per_device = rates.tokens_per_second_per_device;
  }
  return row;
}

SweepRow row_of(const Request& base, const SearchResult& result) {
  const Candidate* const candidate = !result.plans.empty() ? &result.plans.front()
                                     : result.nearest      ? &*result.nearest
                                                           : nullptr;
  SweepRow row{.verdict = {}, .strategy = {}, .figures = {}, .problem = "no layout of the space is legal"};
  if (candidate != nullptr) {
    Request request = base;
    request.strategy = candidate->strategy;
    row = row_of(evaluate(request));
    row.strategy = strategy_flags(candidate->strategy);
  }
  row.figures.evaluated = static_cast<double>(result.evaluated);
  row.figures.feasible = static_cast<double>(result.feasible);
  return row;
}

SweepRow row_of(const InputError& error) {
  SweepRow row;
  for (const auto& [where, rule] : error.problems()) {
    row.problem += (row.problem.empty() ? "" : "; ") + (where.empty() ? rule : where + ": " + rule);
  }
  return row;
}

std::string json_line(const SweepHead& head, std::int64_t point, const SweepRow& row) {
  OrderedJson json{{"point", values_json(head, point)}};
  if (row.verdict) json["verdict"] = name_of(*row.verdict);
  for (const FigureColumn& column : figure_columns) {
    if (const auto& figure = row.figures.*column.figure) json[std::string(column.key)] = number(*figure);
  }
  if (!row.strategy.empty()) json["strategy"] = row.strategy;
  if (!row.problem.empty()) json["problem"] = row.problem;
  return json.dump();
}

SweepRow parse_row(const SweepHead& head, std::int64_t point, const std::string& text,
                   const std::string& where) {
  RowReader reader(text, where);
  SweepRow row;
  const auto values =
      reader.take("point", "must be an object", [](const Json& json) { return json.is_object(); });
  if (!values || *values != Json::parse(values_json(head, point).dump())) {
    throw InputError(where + ": /point",
                     "must hold the values of point " + std::to_string(point) + ", which belongs here");
  }
  const std::string verdict = reader.take_text("verdict");
  row.verdict = from_name<Verdict>(verdict);
  if (!verdict.empty() && !row.verdict) {
    throw InputError(where + ": /verdict", "must be fits, marginal or does_not_fit");
  }
  for (const FigureColumn& column : figure_columns) {
    const auto figure =
        reader.take(column.key, "must be a number", [](const Json& json) { return json.is_number(); });
    if (figure) row.figures.*column.figure = figure->get<double>();
  }
  row.strategy = reader.take_text("strategy");
  row.problem = reader.take_text("problem");
  reader.finish();
  if (!row.verdict && row.problem.empty()) throw InputError(where, "must have a verdict or a problem");
  return row;
}

SweepPrinter::SweepPrinter(const SweepHead& head, Format format)
    : head_(head),
      format_(format),
      table_{.columns = columns_of(head, format == Format::table || format == Format::markdown), .rows = {}} {
}

std::string SweepPrinter::start() {
  switch (format_) {
    case Format::table: return {};
    case Format::csv: return to_csv(table_);
    case Format::markdown: return to_markdown(table_);
    case Format::json: break;
  }
  std::string text = to_text(head_json(head_));
  text.erase(text.rfind("\n}"));
  return text + ",\n  \"rows\": [";
}

std::string SweepPrinter::row(std::int64_t point, const SweepRow& row) {
  if (format_ == Format::json) {
    const bool first = std::exchange(first_, false);
    return (first ? "\n    " : ",\n    ") + json_line(head_, point, row);
  }
  std::vector<std::string> cells = cells_of(head_, point, row, format_ != Format::csv);
  switch (format_) {
    case Format::csv: return csv_row(cells);
    case Format::markdown: return markdown_row(cells);
    case Format::table:
    case Format::json: break;
  }
  table_.rows.push_back(std::move(cells));
  return {};
}

std::string SweepPrinter::end() {
  switch (format_) {
    case Format::table: return to_aligned(table_);
    case Format::json: return "\n  ]\n}\n";
    case Format::csv:
    case Format::markdown: break;
  }
  return {};
}

}  // namespace headroom
