#include "headroom/report/run_calibration.hpp"

#include <cmath>

#include "report/json.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

Table rate_table(const RunCalibration& calibration) {
  Table table{.columns = {{"rate", Align::left}, {"before"}, {"fitted"}, {"", Align::left}}};
  for (const FittedRate& rate : calibration.fitted) {
    table.rows.push_back({rate.name, fmt::format("{:.4g}", rate.before), fmt::format("{:.4g}", rate.value),
                          rate.bound ? "at a bound" : ""});
  }
  return table;
}

Table run_table(const RunCalibration& calibration) {
  Table table{
      .columns = {
          {"run", Align::left}, {"measured"}, {"error before"}, {"after"}, {"left out"}, {"", Align::left}}};
  for (const RunError& run : calibration.runs) {
    table.rows.push_back({run.name, human(run.measured), signed_percent(run.before),
                          signed_percent(run.after), run.left_out ? signed_percent(*run.left_out) : "",
                          run.fitted ? "fitted" : "held out"});
  }
  return table;
}

std::string csv_of(const RunCalibration& calibration) {
  Table table{.columns = {{"case"},
                          {"fitted"},
                          {"measured_seconds"},
                          {"error_before_percent"},
                          {"error_after_percent"},
                          {"error_left_out_percent"}}};
  for (const RunError& run : calibration.runs) {
    table.rows.push_back({run.name, run.fitted ? "true" : "false",
                          fmt::format("{:.9g}", run.measured.count()),
                          fmt::format("{:.3f}", 100 * run.before), fmt::format("{:.3f}", 100 * run.after),
                          run.left_out ? fmt::format("{:.3f}", 100 * *run.left_out) : ""});
  }
  return to_csv(table);
}

// What the fit is worth, on a line for each kind of run.
Table worth_table(const CalibrateToRunsReply& reply) {
  Table table{.columns = {{"runs", Align::left}, {"count"}, {"median |error|"}, {"worst"}}};
  const auto row = [&](const char* name, const RunErrors& errors) {
    if (errors.runs == 0) return;
    table.rows.push_back({name, std::to_string(errors.runs),
                          fmt::format("{:.1f}%", 100 * errors.median_absolute),
                          fmt::format("{:.1f}%", 100 * errors.worst_absolute)});
  };
  row("fitted, before", reply.fitted_before);
  row("fitted, after", reply.fitted_after);
  row("fitted to the others", reply.left_out);
  row("held out, before", reply.held_out_before);
  row("held out, after", reply.held_out_after);
  return table;
}

// "35%": the upper end of an interval.
std::string above(double logarithm) { return percent(std::exp(logarithm) - 1); }

// What calibration does to the interval of an iteration time.
std::string interval_text(const RunCalibration& calibration) {
  const RunSpread& now = *calibration.system.performance->run_spread;
  const double before = calibration.spread_before;
  if (now.origin == Origin::assumed) {
    return fmt::format(
        "The 80% interval of an iteration time {} {} above prediction: {} configurations were held out, and "
        "{} "
        "are needed to tell one.\n",
        now.logarithm > before ? "widens to" : "stays at", above(now.logarithm), now.configurations,
        least_held_out);
  }
  return fmt::format(
      "The 80% interval of an iteration time {} from {} to {} above prediction, which is what {} "
      "configurations allow that were held out.\n",
      now.logarithm < before   ? "narrows"
      : now.logarithm > before ? "widens"
                               : "stays,",
      above(before), above(now.logarithm), now.configurations);
}

OrderedJson spread_json(const RunCalibration& calibration) {
  const RunSpread& now = *calibration.system.performance->run_spread;
  return {{"level", interval_level},       {"logarithm_before", calibration.spread_before},
          {"logarithm", now.logarithm},    {"configurations", now.configurations},
          {"origin", name_of(now.origin)}, {"source", now.source}};
}

OrderedJson json_of(const RunErrors& errors) {
  if (errors.runs == 0) return nullptr;
  return {{"runs", errors.runs},
          {"median_absolute_error_percent", 100 * errors.median_absolute},
          {"worst_absolute_error_percent", 100 * errors.worst_absolute}};
}

std::string json_text(const CalibrateToRunsReply& reply) {
  const RunCalibration& calibration = reply.calibration;
  OrderedJson json{{"format", 2},
                   {"system", to_json(calibration.system)},
                   {"fitted", OrderedJson::object()},
                   {"errors",
                    {{"fitted_before", json_of(reply.fitted_before)},
                     {"fitted_after", json_of(reply.fitted_after)},
                     {"left_out", json_of(reply.left_out)},
                     {"held_out_before", json_of(reply.held_out_before)},
                     {"held_out_after", json_of(reply.held_out_after)}}},
                   {"iteration_spread", spread_json(calibration)},
                   {"runs", OrderedJson::array()},
                   {"skipped", OrderedJson::array()},
                   {"warnings", calibration.warnings}};
  for (const FittedRate& rate : calibration.fitted) {
    json["fitted"][rate.name] = {{"value", rate.value}, {"before", rate.before}, {"at_a_bound", rate.bound}};
  }
  for (const RunError& run : calibration.runs) {
    json["runs"].push_back(
        {{"case", run.name},
         {"fitted", run.fitted},
         {"measured_seconds", run.measured.count()},
         {"error_before_percent", 100 * run.before},
         {"error_after_percent", 100 * run.after},
         {"error_left_out_percent", run.left_out ? OrderedJson(100 * *run.left_out) : OrderedJson()}});
  }
  for (const SkippedRun& run : reply.skipped) {
    json["skipped"].push_back({{"source", run.source}, {"case", run.name}, {"reasons", run.reasons}});
  }
  return to_text(json);
}

}  // namespace

std::string render(const CalibrateToRunsReply& reply, const Style& style) {
  const RunCalibration& calibration = reply.calibration;
  if (style.format == Format::json) return json_text(reply);
  if (style.format == Format::csv) return csv_of(calibration);
  std::string text = render_table(rate_table(calibration), style) + '\n';
  text += render_table(run_table(calibration), style) + '\n';
  text += render_table(worth_table(reply), style) + '\n';
  text += interval_text(calibration);
  if (!calibration.warnings.empty() || !reply.skipped.empty()) text += '\n';
  for (const std::string& warning : calibration.warnings) text += "note: " + warning + '\n';
  for (const SkippedRun& run : reply.skipped)
    text += fmt::format("skipped: {}: {}\n", run.name, text_of(run));
  return fitted(text, style);
}

}  // namespace headroom
