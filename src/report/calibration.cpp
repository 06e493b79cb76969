#include "headroom/report/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/io/quantity.hpp"
#include "report/json.hpp"
#include "report/profile.hpp"
#include "report/sample_rows.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t worst_shown = 10;

const ErrorGroup* find(const std::vector<ErrorGroup>& groups, const std::string& name) {
  const auto group =
      std::find_if(groups.begin(), groups.end(), [&](const ErrorGroup& each) { return each.name == name; });
  return group == groups.end() ? nullptr : &*group;
}

// "83%", of the samples that have an 80% interval.
std::string covered_text(const ErrorGroup& group) {
  if (group.intervals == 0) return "";
  return fmt::format("{:.0f}%",
                     100 * static_cast<double>(group.covered) / static_cast<double>(group.intervals));
}

// Errors of the fit, next to the errors of the same samples held out.
Table error_table(const Calibration& calibration) {
  Table table{.columns = {{"samples", Align::left},
                          {"count"},
                          {"median |error|"},
                          {"90%"},
                          {"held out: median"},
                          {"90%"},
                          {"worst"},
                          {"bias"},
                          {"80% within"},
                          {"in interval"}}};
  for (const ErrorGroup& group : calibration.fit.groups) {
    const ErrorGroup* held_out = find(calibration.held_out, group.name);
    std::vector<std::string> row{group.name, std::to_string(group.count), percent(group.median_absolute),
                                 percent(group.percentile_90_absolute)};
    if (held_out != nullptr) {
      row.insert(row.end(),
                 {percent(held_out->median_absolute), percent(held_out->percentile_90_absolute),
                  percent(held_out->worst_absolute), signed_percent(held_out->bias),
                  signed_percent(held_out->percentile_10) + " " + signed_percent(held_out->percentile_90),
                  covered_text(*held_out)});
    }
    row.resize(table.columns.size());
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Fitted rates, as a system file has them.
Table rate_table(const Calibration& calibration) {
  Table table{.columns = {{"rate", Align::left}, {"value"}, {"", Align::left}}};
  visit_rates(calibration.system.performance->rates, [&](std::string_view group, std::string_view name,
                                                         const auto& rate) {
    const std::string full = fmt::format("{}.{}", group, name);
    for (const FittedRate& fitted : calibration.fitted) {
      if (fitted.name != full) continue;
      std::string value;
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(rate.value)>, double>) {
        value = fmt::format("{}", rate.value);
      } else {
        value = to_text(rate.value);
      }
      table.rows.push_back({full, value, fitted.bound ? "at a bound: not told by these samples" : ""});
    }
  });
  return table;
}

OrderedJson json_of(const ErrorGroup& group) {
  return {{"group", group.name},
          {"count", group.count},
          {"median_absolute_error_percent", 100 * group.median_absolute},
          {"percentile_90_absolute_error_percent", 100 * group.percentile_90_absolute},
          {"worst_absolute_error_percent", 100 * group.worst_absolute},
          {"bias_percent", 100 * group.bias},
          {"interval_80_percent", {100 * group.percentile_10, 100 * group.percentile_90}},
          {"intervals", group.intervals},
          {"covered", group.covered}};
}

OrderedJson json_of(const std::vector<ErrorGroup>& groups) {
  OrderedJson list = OrderedJson::array();
  for (const ErrorGroup& group : groups) list.push_back(json_of(group));
  return list;
}

std::vector<ReplayedSample> worst_first(std::vector<ReplayedSample> rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const ReplayedSample& x, const ReplayedSample& y) {
    return std::abs(x.error) > std::abs(y.error);
  });
  return rows;
}

Table replay_groups(const SampleReplay& replay) {
  Table table{.columns = {{"samples", Align::left},
                          {"count"},
                          {"median |error|"},
                          {"90%"},
                          {"worst"},
                          {"bias"},
                          {"in 80% interval"}}};
  for (const ErrorGroup& group : replay.groups) {
    table.rows.push_back({group.name, std::to_string(group.count), percent(group.median_absolute),
                          percent(group.percentile_90_absolute), percent(group.worst_absolute),
                          signed_percent(group.bias), covered_text(group)});
  }
  return table;
}

// Returns how many samples lie in the interval, of all samples of kinds whose rates have one.
std::string coverage_line(const ValidateSamplesReply& reply) {
  if (reply.intervals == 0) return "No rates of this system say in which interval samples should lie.\n\n";
  return fmt::format("{} of {} samples ({:.0f}%) lie in the 80% interval of their rates.\n\n", reply.covered,
                     reply.intervals,
                     100 * static_cast<double>(reply.covered) / static_cast<double>(reply.intervals));
}

Table replay_rows(const std::vector<ReplayedSample>& rows) {
  Table table{.columns = {{"kind", Align::left},
                          {"size", Align::left},
                          {"predicted"},
                          {"measured"},
                          {"error"},
                          {"", Align::left}}};
  for (const ReplayedSample& row : rows) {
    table.rows.push_back({kind_of_sample(row.sample), size_of_sample(row.sample), human(row.predicted),
                          human(row.sample.median), signed_percent(row.error),
                          row.extrapolated ? "beyond the fitted sizes" : ""});
  }
  return table;
}

OrderedJson unmodelled_json(const SampleReplay& replay) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [kind, count] : replay.unmodelled) json[std::string(name_of(kind))] = count;
  return json;
}

}  // namespace

std::string render(const CalibrateReply& reply, const Style& style) {
  const Calibration& calibration = reply.calibration;
  if (style.format == Format::json) {
    OrderedJson fitted = OrderedJson::object();
    for (const FittedRate& rate : calibration.fitted) {
      fitted[rate.name] = {{"value", rate.value}, {"at_a_bound", rate.bound}};
    }
    return to_text({{"format", 2},
                    {"system", to_json(calibration.system)},
                    {"fitted", std::move(fitted)},
                    {"errors", json_of(calibration.fit.groups)},
                    {"held_out_errors", json_of(calibration.held_out)},
                    {"unmodelled", unmodelled_json(calibration.fit)},
                    {"profiles", profiles_json(reply.profiles)},
                    {"warnings", calibration.warnings}});
  }
  if (style.format == Format::csv) return to_csv(error_table(calibration));
  std::string text;
  for (const Profile& profile : reply.profiles) text += profile_text(profile, style);
  text += render_table(rate_table(calibration), style) + '\n';
  text += render_table(error_table(calibration), style);
  if (!calibration.warnings.empty()) text += '\n';
  for (const std::string& warning : calibration.warnings) text += "note: " + warning + '\n';
  return fitted(text, style);
}

std::string render(const ValidateSamplesReply& reply, const Style& style, bool all) {
  const SampleReplay& replay = reply.replay;
  if (style.format == Format::json) {
    OrderedJson rows = OrderedJson::array();
    for (const ReplayedSample& row : replay.rows) rows.push_back(json_of(row));
    return to_text({{"format", 2},
                    {"system", to_json(reply.system)},
                    {"groups", json_of(replay.groups)},
                    {"samples", std::move(rows)},
                    {"unmodelled", unmodelled_json(replay)}});
  }
  if (style.format == Format::csv) return csv_of(replay);
  std::vector<ReplayedSample> rows = all ? replay.rows : worst_first(replay.rows);
  if (!all) rows.resize(std::min(rows.size(), worst_shown));
  std::string text = render_table(replay_groups(replay), style) + '\n' + coverage_line(reply);
  if (rows.size() < replay.rows.size()) {
    text += fmt::format("The worst {} of {} samples; --all shows the others.\n\n", rows.size(),
                        replay.rows.size());
  }
  text += render_table(replay_rows(rows), style);
  for (const auto& [kind, count] : replay.unmodelled) {
    text +=
        fmt::format("\n{} samples of {} are left out: they carry no rate, and no equation predicts them.\n",
                    count, name_of(kind));
  }
  return fitted(text, style);
}

}  // namespace headroom
