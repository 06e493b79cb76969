#include "headroom/report/validation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "headroom/plan/interval.hpp"
#include "report/choices.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/validation_text.hpp"

namespace headroom {
namespace {

constexpr std::size_t rows_shown_of_a_group = 5;

// "mean 2.50%, worst 5.00%"
std::string target_text(const GroupSummary& group) {
  if (!group.target) return "none";
  std::string text;
  const auto add = [&](const char* name, std::optional<double> limit) {
    if (!limit) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        group.ratios ? points(*limit) : percent(*limit, 2));
  };
  add("median", group.target->median);
  add("mean", group.target->mean);
  add("worst", group.target->worst);
  const Measure measure = group.target->measure;
  const bool at_measured = measure == Measure::mfu_at_measured || measure == Measure::hfu_paper_at_measured;
  return text + (at_measured ? " + rounding of time" : "");
}

std::string met_text(const GroupSummary& group) { return !group.target ? "" : group.met ? "yes" : "NO"; }

Table group_table(const std::vector<GroupSummary>& groups, const Style& style) {
  Table table{.columns = {{"group", Align::left},
                          {"met", Align::left},
                          {"rows"},
                          {"median |error|"},
                          {"mean |error|", Align::right, 1},
                          {"mean error"},
                          {"worst |error|"},
                          {"in 80% interval"},
                          {"target", Align::left}}};
  for (const GroupSummary& group : groups) {
    const auto absolute = [&](double part) { return size_text(part, group.ratios); };
    const std::string met = met_text(group);
    table.rows.push_back(
        {group.group, group.target ? painted(met, group.met, style) : met, std::to_string(group.rows),
         absolute(group.median_absolute), absolute(group.mean_absolute), error_text(group.mean, group.ratios),
         absolute(group.worst_absolute), covered_rows(group.covered, group.intervals), target_text(group)});
  }
  return table;
}

std::string coverage_text(const ValidateReply& report) {
  std::string text;
  for (const auto& [measure, intervals, covered] : report.coverage) {
    text += fmt::format("{} of {} {} ({:.0f}%) lie in their 80% interval.\n", covered, intervals,
                        is_bytes(measure) ? "peaks of allocated memory" : "iteration times",
                        100 * static_cast<double>(covered) / static_cast<double>(intervals));
  }
  return text;
}

// "The verdict on 2 of 782 measured runs is that they do not fit: a, b."
std::string unfit_text(const ValidateReply& report) {
  constexpr std::size_t shown = 5;
  std::vector<std::string> names;
  for (const Comparison& row : report.rows) {
    const bool of_run = row.measure == Measure::iteration_seconds || is_bytes(row.measure);
    if (of_run && !row.fits && std::find(names.begin(), names.end(), row.name) == names.end())
      names.push_back(row.name);
  }
  if (names.empty()) return "";
  const std::size_t count = names.size();
  names.resize(std::min(count, shown));
  return fmt::format("The verdict on {} of {} measured runs is that they do not fit: {}{}.\n", count,
                     report.runs, fmt::join(names, ", "),
                     count > shown ? fmt::format(" and {} more", count - shown) : "");
}

Table row_table(const std::vector<Comparison>& rows) {
  Table table{.columns = {{"case", Align::left},
                          {"quantity", Align::left},
                          {"predicted"},
                          {"measured"},
                          {"error"},
                          {"tolerance", Align::right, 1}}};
  for (const Comparison& row : rows) {
    std::string tolerance;
    if (row.tolerance)
      tolerance = is_ratio(row.measure) ? points(*row.tolerance) : percent(*row.tolerance, 2);
    table.rows.push_back({row.name, words(name_of(row.measure)), value_text(row.measure, row.predicted),
                          value_text(row.measure, row.measured), error_text(row.error, is_ratio(row.measure)),
                          tolerance});
  }
  return table;
}

// A table for each group, below its name.
std::string rows_text(const ValidateReply& report, const Style& style, bool all) {
  std::string text;
  std::size_t shown = 0;
  for (const GroupSummary& group : report.groups) {
    std::vector<Comparison> rows = worst_first(report, group.group);
    if (!all) rows.resize(std::min(rows.size(), rows_shown_of_a_group));
    shown += rows.size();
    const char* const heading_end = style.format == Format::markdown ? "\n\n" : "\n";
    text += '\n' + group.group + heading_end + render_table(row_table(rows), style);
  }
  if (shown == report.rows.size()) return text;
  return fmt::format("\nThe worst of each group, {} of {} rows; --all shows the others.\n", shown,
                     report.rows.size()) +
         text;
}

std::string csv_of(const ValidateReply& report) {
  Table table{.columns = {{"group"},
                          {"case"},
                          {"quantity"},
                          {"predicted"},
                          {"measured"},
                          {"error_percent"},
                          {"tolerance_percent"}}};
  for (const GroupSummary& group : report.groups) {
    for (const Comparison& row : worst_first(report, group.group)) {
      table.rows.push_back({row.group, row.name, std::string(name_of(row.measure)),
                            fmt::format("{:.9g}", row.predicted), fmt::format("{:.9g}", row.measured),
                            fmt::format("{:.3f}", 100 * row.error),
                            row.tolerance ? fmt::format("{:.6g}", 100 * *row.tolerance) : ""});
    }
  }
  return to_csv(table);
}

// Reasons of the runs skipped, the most frequent first. A run counts under each that it has.
struct SkipReason {
  std::string reason;
  std::size_t runs = 0;
  std::size_t alone = 0;  // runs that have no other
  std::vector<std::string> sources;
};

std::vector<SkipReason> skip_reasons(const std::vector<SkippedRun>& skipped) {
  std::vector<SkipReason> reasons;
  for (const SkippedRun& run : skipped) {
    for (const std::string& text : run.reasons) {
      auto it = std::find_if(reasons.begin(), reasons.end(),
                             [&](const SkipReason& reason) { return reason.reason == text; });
      if (it == reasons.end()) it = reasons.insert(it, {.reason = text, .sources = {}});
      ++it->runs;
      if (run.reasons.size() == 1) ++it->alone;
      if (std::find(it->sources.begin(), it->sources.end(), run.source) == it->sources.end())
        it->sources.push_back(run.source);
    }
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const SkipReason& x, const SkipReason& y) { return x.runs > y.runs; });
  return reasons;
}

constexpr std::size_t reasons_shown = 20;

Table skipped_table(const std::vector<SkipReason>& reasons, bool all) {
  Table table{
      .columns = {{"skipped"}, {"only for this"}, {"reason", Align::left}, {"source", Align::left, 1}}};
  for (const auto& [reason, runs, alone, sources] : reasons) {
    if (!all && table.rows.size() == reasons_shown) break;
    table.rows.push_back(
        {std::to_string(runs), alone == 0 ? "" : std::to_string(alone), reason,
         sources.size() == 1 ? sources.front() : std::to_string(sources.size()) + " sources"});
  }
  return table;
}

// Names of runs may be as long as a line, so that a table would leave no room for the reasons.
std::string skipped_runs(const std::vector<SkippedRun>& skipped, const Style& style) {
  const bool markdown = style.format == Format::markdown;
  std::string text;
  for (const SkippedRun& run : skipped)
    text += fmt::format("{}{}: {}\n", markdown ? "- " : "", run.name, text_of(run));
  return markdown ? text : in_lines(text, style.columns);
}

std::string skipped_text(const ValidateReply& report, const Style& style, bool all) {
  const std::vector<SkipReason> reasons = skip_reasons(report.skipped);
  std::string text = render_table(skipped_table(reasons, all), style);
  if (!all && reasons.size() > reasons_shown) {
    text +=
        fmt::format("\nThe most frequent of {} reasons; --all shows the others, and each run with its own.\n",
                    reasons.size());
  }
  if (all) text += "\nRuns that are skipped:\n" + skipped_runs(report.skipped, style);
  return text;
}

// "Members that are not read: parallel.nvlink_domain (273 runs), ..."
std::string unread_text(const ValidateReply& report) {
  std::vector<std::string> members;
  members.reserve(report.unread.size());
  for (const auto& [name, runs] : report.unread)
    members.push_back(fmt::format("{} ({} {})", name, runs, runs == 1 ? "run" : "runs"));
  return fmt::format("\nMembers that are not read: {}.\n", fmt::join(members, ", "));
}

OrderedJson limit_json(std::optional<double> limit) {
  return limit ? OrderedJson(100 * *limit) : OrderedJson(nullptr);
}

OrderedJson json_of(const GroupSummary& group) {
  OrderedJson json{{"group", group.group},
                   {"rows", group.rows},
                   {"errors_in", group.ratios ? "points" : "percent"},
                   {"median_absolute_error", 100 * group.median_absolute},
                   {"mean_absolute_error", 100 * group.mean_absolute},
                   {"mean_error", 100 * group.mean},
                   {"worst_absolute_error", 100 * group.worst_absolute},
                   {"interval", nullptr},
                   {"target", nullptr},
                   {"met", nullptr}};
  if (group.intervals > 0) {
    json["interval"] = {{"level", interval_level}, {"rows", group.intervals}, {"covered", group.covered}};
  }
  if (group.target) {
    json["target"] = {{"median", limit_json(group.target->median)},
                      {"mean", limit_json(group.target->mean)},
                      {"worst", limit_json(group.target->worst)}};
    json["met"] = group.met;
  }
  return json;
}

std::string json_text(const ValidateReply& report) {
  OrderedJson json{{"format", 2},
                   {"met", met(report)},
                   {"intervals", OrderedJson::object()},
                   {"groups", OrderedJson::array()},
                   {"rows", OrderedJson::array()},
                   {"skipped", OrderedJson::array()},
                   {"members_not_read", OrderedJson::array()}};
  for (const auto& [measure, intervals, covered] : report.coverage) {
    json["intervals"][std::string(name_of(measure))] = {
        {"level", interval_level}, {"rows", intervals}, {"covered", covered}};
  }
  for (const GroupSummary& group : report.groups) {
    json["groups"].push_back(json_of(group));
    for (const Comparison& row : worst_first(report, group.group)) {
      json["rows"].push_back(
          {{"group", row.group},
           {"case", row.name},
           {"quantity", name_of(row.measure)},
           {"predicted", row.predicted},
           {"measured", row.measured},
           {is_ratio(row.measure) ? "error_points" : "error_percent", 100 * row.error},
           {"tolerance", limit_json(row.tolerance)},
           {"in_interval", row.in_interval ? OrderedJson(*row.in_interval) : OrderedJson()},
           {"fits", row.fits}});
      if (row.step_rates) json["rows"].back()["step_rates"] = name_of(*row.step_rates);
    }
  }
  for (const SkippedRun& run : report.skipped) {
    json["skipped"].push_back({{"source", run.source}, {"case", run.name}, {"reasons", run.reasons}});
  }
  for (const auto& [name, runs] : report.unread) {
    json["members_not_read"].push_back({{"member", name}, {"runs", runs}});
  }
  if (report.judged) json["choices"] = choices_json(*report.judged);
  return to_text(json);
}

}  // namespace

std::string render(const ValidateReply& report, const Style& style, bool all) {
  if (style.format == Format::json) return json_text(report);
  if (style.format == Format::csv) return csv_of(report);
  std::string text;
  if (!report.skipped.empty()) {
    text += predicted_text(report) + (report.runs > 0 ? ", for the reasons below" : "") + ".\n\n";
  }
  if (!report.groups.empty()) {
    const std::string coverage = coverage_text(report) + unfit_text(report);
    text += render_table(group_table(report.groups, style), style) + (coverage.empty() ? "" : "\n") +
            coverage + rows_text(report, style, all);
  }
  if (report.judged) text += choices_text(*report.judged, style, all);
  if (!report.skipped.empty()) text += (report.groups.empty() ? "" : "\n") + skipped_text(report, style, all);
  if (!report.unread.empty()) text += unread_text(report);
  return fitted(text, style);
}

}  // namespace headroom
