#include "headroom/report/sweep.hpp"

#include <algorithm>
#include <array>

#include "io/strict_json.hpp"
#include "report/capacity.hpp"
#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

// How a figure reads in a table.
struct FigureColumn {
  std::optional<double> SweepFigures::*figure;
  std::string_view header;
  std::string (*text)(double);
  int expendable;  // where there is no room for all
};

std::string seconds_text(double value) { return fmt::format("{:#.4g}", value); }
std::string percent_text(double value) { return fmt::format("{:.1f}%", 100 * value); }
std::string days_figure(double value) { return fmt::format("{:.1f}", value); }
std::string price_figure(double value) { return human_price(Training{.currency = ""}, value); }
std::string megawatt_hours_figure(double value) { return fmt::format("{:.1f}", value / 1000); }
std::string gib_text(double value) { return in_gib(Bytes(value)); }

static_assert(interval_level == 0.8);  // which headings name
constexpr std::array<FigureColumn, sweep_figures.size()> figure_columns{{
    {&SweepFigures::devices, "GPUs", whole, 1},
    {&SweepFigures::peak_rank, "peak rank", whole, 7},
    {&SweepFigures::peak_bytes, "peak GiB", gib_text, 1},
    {&SweepFigures::headroom_bytes, "free", gib_text, 1},
    {&SweepFigures::iteration_seconds, "seconds", seconds_text, 0},
    {&SweepFigures::low_iteration_seconds, "80% from", seconds_text, 5},
    {&SweepFigures::high_iteration_seconds, "80% to", seconds_text, 4},
    {&SweepFigures::mfu, "MFU (causal)", percent_text, 2},
    {&SweepFigures::hfu, "HFU (causal)", percent_text, 8},
    {&SweepFigures::tokens_per_second, "tokens/s", whole, 3},
    {&SweepFigures::tokens_per_second_per_device, "per GPU", whole, 6},
    {&SweepFigures::days, "days", days_figure, 0},
    {&SweepFigures::low_days, "80% days from", days_figure, 5},
    {&SweepFigures::high_days, "80% days to", days_figure, 4},
    {&SweepFigures::price, "price", price_figure, 0},
    {&SweepFigures::low_price, "80% price from", price_figure, 5},
    {&SweepFigures::high_price, "80% price to", price_figure, 4},
    {&SweepFigures::kilowatt_hours, "MWh", megawatt_hours_figure, 3},
    {&SweepFigures::goodput, "goodput", percent_text, 1},
    {&SweepFigures::evaluated, "evaluated", whole, 10},
    {&SweepFigures::feasible, "feasible", whole, 9},
}};

std::string_view key_of(const FigureColumn& column) {
  return std::find_if(sweep_figures.begin(), sweep_figures.end(),
                      [&](const SweepFigure& figure) { return figure.figure == column.figure; })
      ->name;
}

// A search counts strategies. A figure that is varied, as devices may be, has its column already.
std::vector<FigureColumn> figures_of(const SweepHead& head) {
  const std::vector<std::string> varied = fields_of(head.grid);
  std::vector<FigureColumn> columns(figure_columns.begin(), figure_columns.end());
  std::erase_if(columns, [&](const FigureColumn& column) {
    const bool counts = column.figure == &SweepFigures::evaluated || column.figure == &SweepFigures::feasible;
    const auto is = [&](auto... figures) { return ((column.figure == figures) || ...); };
    const bool of_days = is(&SweepFigures::days, &SweepFigures::low_days, &SweepFigures::high_days,
                            &SweepFigures::kilowatt_hours);
    const bool of_prices = is(&SweepFigures::price, &SweepFigures::low_price, &SweepFigures::high_price);
    return (counts && head.kind != SweepKind::plan) || (of_days && !head.with_days) ||
           (of_prices && !head.with_prices) ||
           (column.figure == &SweepFigures::goodput && !head.with_failures) ||
           std::find(varied.begin(), varied.end(), key_of(column)) != varied.end();
  });
  return columns;
}

std::vector<Column> columns_of(const SweepHead& head, bool for_reading) {
  std::vector<Column> columns;
  for (const Axis& axis : head.grid.axes) {
    for (std::size_t i = 0; i < axis.fields.size(); ++i) {
      const bool counted = scalar(axis.steps.front()[i]).is_number();
      columns.push_back(
          {for_reading ? heading_of(axis.fields[i]) : axis.fields[i], counted ? Align::right : Align::left});
    }
  }
  columns.push_back({"verdict", Align::left});
  for (const FigureColumn& column : figures_of(head)) {
    columns.push_back(
        {std::string(for_reading ? column.header : key_of(column)), Align::right, column.expendable});
  }
  if (head.kind == SweepKind::plan) columns.push_back({"strategy", Align::left});
  columns.push_back({"problem", Align::left});
  return columns;
}

std::string base_units(double value) { return number(value).dump(); }

std::vector<std::string> cells_of(const SweepHead& head, std::int64_t point, const SweepRow& row,
                                  const Style& style) {
  const bool for_reading = style.format != Format::csv;
  std::vector<std::string> cells = point_of(head.grid, point);
  cells.push_back(row.verdict ? painted(std::string(name_of(*row.verdict)), *row.verdict, style) : "");
  for (const FigureColumn& column : figures_of(head)) {
    const std::optional<double>& figure = row.figures.*column.figure;
    cells.push_back(!figure ? "" : for_reading ? column.text(*figure) : base_units(*figure));
  }
  if (head.kind == SweepKind::plan)
    cells.push_back(row.strategy ? flags_of(*row.strategy, FlagNames::letters) : "");
  cells.push_back(problem_text(row));
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
  OrderedJson json{{"format", 2},
                   {"kind", head.kind == SweepKind::plan ? "plan" : "estimate"},
                   {"arguments", head.arguments},
                   {"axes", std::move(axes)},
                   {"points", point_count(head.grid)}};
  if (head.model) json["model"] = to_json(*head.model);
  if (head.system) json["system"] = to_json(*head.system);
  if (head.software) json["software"] = to_json(*head.software);
  return json;
}

}  // namespace

std::string json_line(const SweepHead& head, std::int64_t point, const SweepRow& row) {
  OrderedJson json{{"point", values_json(head, point)}};
  if (row.verdict) json["verdict"] = name_of(*row.verdict);
  for (const auto& [name, member] : sweep_figures) {
    if (const auto& figure = row.figures.*member) json[std::string(name)] = number(*figure);
  }
  if (row.strategy) json["strategy"] = flags_of(*row.strategy, FlagNames::letters);
  if (!row.problems.empty()) json["problem"] = problem_text(row);
  return json.dump();
}

std::string render(const SweepReply& reply, const Style& style) {
  SweepPrinter printer(reply.head, style);
  std::string text = printer.start();
  for (std::size_t i = 0; i < reply.rows.size(); ++i) {
    text += printer.row(static_cast<std::int64_t>(i), reply.rows[i]);
  }
  return text + printer.end();
}

SweepPrinter::SweepPrinter(const SweepHead& head, const Style& style)
    : head_(head),
      style_(style),
      table_{.columns = columns_of(head, style.format == Format::table || style.format == Format::markdown),
             .rows = {}} {}

std::string SweepPrinter::start() {
  switch (style_.format) {
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
  ++rows_;
  if (style_.format == Format::json) {
    const bool first = std::exchange(first_, false);
    return (first ? "\n    " : ",\n    ") + json_line(head_, point, row);
  }
  std::vector<std::string> cells = cells_of(head_, point, row, style_);
  switch (style_.format) {
    case Format::csv: return csv_row(cells);
    case Format::markdown: return markdown_row(cells);
    case Format::table:
    case Format::json: break;
  }
  table_.rows.push_back(std::move(cells));
  return {};
}

std::string SweepPrinter::end(const std::optional<Stop>& stop) {
  const std::string note =
      stop ? fmt::format("{}: {} of {} points\n", stopped_text(*stop), rows_, point_count(head_.grid)) : "";
  switch (style_.format) {
    case Format::table: return to_aligned(table_, style_.columns) + note;
    case Format::json:
      return stop ? fmt::format("\n  ],\n  \"stopped\": \"{}\"\n}}\n", name_of(stop->reason)) : "\n  ]\n}\n";
    case Format::markdown: return note.empty() ? note : "\n" + note;
    case Format::csv: break;
  }
  return {};
}

}  // namespace headroom
