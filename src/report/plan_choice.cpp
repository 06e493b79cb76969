#include "report/plan_choice.hpp"

#include <algorithm>

#include "report/estimate_json.hpp"
#include "report/plan_json.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

std::string flags_of(const PlanReply& report, const Candidate& candidate) {
  return strategy_flags(candidate.strategy,
                        report.comparison.offers[variant_of(report, candidate).offer].software,
                        report.base.model);
}

std::string drawbacks_text(const std::vector<const Drawback*>& drawbacks) {
  std::string text;
  for (std::size_t i = 0; i < drawbacks.size(); ++i)
    text += (i == 0 ? "" : i + 1 < drawbacks.size() ? ", " : " and ") + std::string(drawbacks[i]->text);
  return text;
}

OrderedJson names_json(const std::vector<const Drawback*>& drawbacks) {
  OrderedJson names = OrderedJson::array();
  for (const Drawback* const drawback : drawbacks) names.push_back(drawback->name);
  return names;
}

// "2, 3 and 5"
std::string listed(const std::vector<std::size_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 < numbers.size() ? ", " : " and ") + std::to_string(numbers[i]);
  return text;
}

}  // namespace

std::string odds_text(double odds) {
  if (odds < 0.005) return "below 1%";
  return odds > 0.995 ? "above 99%" : fmt::format("{:.0f}%", 100 * odds);
}

std::string preference_text(const PlanReply& report, std::size_t shown) {
  if (!report.choice) return {};
  const PlanChoice& choice = *report.choice;
  const Candidate& first = report.result.plans.front();
  std::string text;
  for (const auto& [name, rule] : choice.remarks) text += fmt::format("- {} {}\n", name, rule);
  if (choice.measured > 0) {
    const PlanBelief& belief = choice.plans.front();
    text += fmt::format("- after {} measured {}: expected to take {}", choice.measured,
                        choice.measured == 1 ? "run" : "runs", human(*belief.expected));
    text += belief.measured ? ", as measured\n"
                            : fmt::format(" ({:.0f}%: {} to {})\n", 100 * interval_level,
                                          human(belief.interval->low), human(belief.interval->high));
  }
  std::vector<std::size_t> equal;
  for (std::size_t i = 1; i < choice.plans.size(); ++i) {
    if (choice.plans[i].equal) equal.push_back(i + 1);
  }
  const std::size_t all = equal.size();
  std::erase_if(equal, [&](std::size_t plan) { return plan > shown; });
  const std::string more = equal.size() < all ? fmt::format(" and {} more", all - equal.size()) : "";
  if (!equal.empty() && choice.plans.front().equal) {
    text +=
        fmt::format("- equal within noise: plan{} {}{}; the odds that plan 1 is the fastest are {}\n",
                    equal.size() == 1 ? "" : "s", listed(equal), more, odds_text(choice.plans.front().odds));
  }
  if (!choice.fastest) return text;
  const Candidate& fastest = *choice.fastest;
  const double gain = 1 - fastest.iteration / first.iteration;
  const auto plan = std::find_if(report.result.plans.begin(), report.result.plans.end(),
                                 [&](const Candidate& it) { return it.strategy == fastest.strategy; });
  const std::string name = plan == report.result.plans.end()
                               ? flags_of(report, fastest)
                               : fmt::format("plan {}", plan - report.result.plans.begin() + 1);
  text += fmt::format("- preferred to {} ({}, {:+.1f}%), which is equal within noise", name,
                      human(fastest.iteration), -100 * gain);
  if (!choice.spared.empty()) text += fmt::format(" but has {}", drawbacks_text(choice.spared));
  return text + ": --exact takes it\n";
}

std::string trials_text(const PlanReply& report, const PlanWords& asked, const Style& style) {
  if (!report.choice || asked.trials == 0) return {};
  const PlanChoice& choice = *report.choice;
  if (choice.trials.empty()) return "\nNo trial would tell more: one plan is the fastest, or nearly so.\n";
  Table table{.columns = {{"trial"}, {"seconds"}, {"expected loss after"}, {"strategy", Align::left}}};
  for (std::size_t i = 0; i < choice.trials.size(); ++i) {
    const auto& [candidate, loss, launch] = choice.trials[i];
    table.rows.push_back({std::to_string(i + 1), fmt::format("{:#.4g}", candidate.iteration.count()),
                          fmt::format("{:.2f}%", 100 * loss), flags_of(report, candidate)});
  }
  return fmt::format(
             "\nMeasure these first. Without a trial, the plan predicted to be the fastest is expected to "
             "take {:.2f}% longer "
             "than the one that is:\n",
             100 * choice.loss) +
         (style.format == Format::markdown ? "\n" : "") + render_table(table, style) +
         "Put their times into a file and add --measured FILE; --launch-dir writes it with the launches.\n";
}

OrderedJson choice_json(const PlanReply& report, const PlanWords& asked) {
  const PlanChoice& choice = *report.choice;
  OrderedJson plans = OrderedJson::array();
  for (std::size_t i = 0; i < std::min(asked.shown, choice.plans.size()); ++i) {
    const PlanBelief& belief = choice.plans[i];
    OrderedJson one{{"odds_of_fastest", belief.odds},
                    {"equal_within_noise", belief.equal},
                    {"drawbacks", names_json(belief.drawbacks)}};
    if (belief.expected) one["expected_seconds"] = belief.expected->count();
    if (belief.interval) one["expected_interval"] = interval_json(*belief.interval);
    if (belief.measured) one["measured_seconds"] = belief.measured->count();
    plans.push_back(std::move(one));
  }
  OrderedJson json{{"ranked_by", choice.exact ? "time" : "preference"},
                   {"measured", choice.measured},
                   {"plans", std::move(plans)}};
  if (!choice.remarks.empty()) {
    OrderedJson& remarks = json["remarks"] = OrderedJson::array();
    for (const auto& [name, rule] : choice.remarks) remarks.push_back({{"run", name}, {"remark", rule}});
  }
  if (choice.fastest) {
    json["fastest"] = point_json(report, asked, *choice.fastest, nullptr);
    json["odds_of_fastest"] = choice.odds_of_fastest;
    json["spared"] = names_json(choice.spared);
  }
  if (asked.trials > 0) {
    OrderedJson trials = OrderedJson::array();
    for (const auto& [candidate, loss, launch] : choice.trials) {
      OrderedJson one{{"flags", flags_of(report, candidate)},
                      {"plan", point_json(report, asked, candidate, nullptr)},
                      {"expected_loss_after", loss}};
      if (launch) one["launch"] = launch_json(*launch);
      trials.push_back(std::move(one));
    }
    json["expected_loss"] = choice.loss;
    json["trials"] = std::move(trials);
  }
  return json;
}

}  // namespace headroom
