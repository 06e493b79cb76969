#include "report/plan_choice.hpp"

#include <algorithm>

#include "report/estimate_json.hpp"
#include "report/plan_json.hpp"
#include "report/plan_tables.hpp"
#include "report/strategy_flags.hpp"
#include "report/text.hpp"

namespace headroom {
namespace {

OrderedJson names_json(const std::vector<const Drawback*>& drawbacks) {
  OrderedJson names = OrderedJson::array();
  for (const Drawback* const drawback : drawbacks) names.push_back(drawback->name);
  return names;
}

std::vector<std::string> texts_of(const std::vector<const Drawback*>& drawbacks) {
  std::vector<std::string> texts(drawbacks.size());
  std::transform(drawbacks.begin(), drawbacks.end(), texts.begin(),
                 [](const Drawback* drawback) { return drawback->text; });
  return texts;
}

// What runs tell of the first plan.
std::string runs_text(const PlanChoice& choice) {
  const PlanBelief& belief = choice.plans.front();
  const std::string interval = belief.ran
                                   ? ", as measured"
                                   : fmt::format(" ({:.0f}%: {} to {})", 100 * interval_level,
                                                 human(belief.interval->low), human(belief.interval->high));
  return fmt::format("- after {} measured {}: expected to take {}{}\n", choice.measured,
                     choice.measured == 1 ? "run" : "runs", human(*belief.expected), interval);
}

// "- equal within noise: plans 2 and 3 and 4 more; ..."
std::string equals_text(const PlanChoice& choice, std::size_t shown) {
  std::vector<std::string> equal;
  std::size_t more = 0;
  for (std::size_t i = 1; i < choice.plans.size(); ++i) {
    if (!choice.plans[i].equal) continue;
    if (i < shown) {
      equal.push_back(std::to_string(i + 1));
    } else {
      ++more;
    }
  }
  if (equal.empty() || !choice.plans.front().equal) return {};
  return fmt::format("- equal within noise: plan{} {}{}; the odds that plan 1 is the fastest are {}\n",
                     equal.size() == 1 ? "" : "s", listed(equal),
                     more > 0 ? fmt::format(" and {} more", more) : "", odds_text(choice.plans.front().odds));
}

// "- preferred to plan 2 (...), which is equal within noise but has an uneven layout: --exact takes it"
std::string spared_text(const PlanReply& report) {
  const auto& spared = *report.choice->spared;
  const Candidate& fastest = spared.candidate;
  const std::vector<Candidate>& plans = report.result.plans;
  const auto plan = std::find_if(plans.begin(), plans.end(),
                                 [&](const Candidate& it) { return it.strategy == fastest.strategy; });
  const std::string name =
      plan == plans.end() ? flags_of(report, fastest) : fmt::format("plan {}", plan - plans.begin() + 1);
  return fmt::format("- preferred to {} ({}, {:+.1f}%), which is equal within noise{}: --exact takes it\n",
                     name, human(fastest.iteration), 100 * (fastest.iteration / plans.front().iteration - 1),
                     spared.drawbacks.empty() ? "" : " but has " + listed(texts_of(spared.drawbacks)));
}

}  // namespace

std::string odds_text(double odds) {
  if (odds < 0.005) return "below 1%";
  return odds > 0.995 ? "above 99%" : fmt::format("{:.0f}%", 100 * odds);
}

std::string preference_text(const PlanReply& report, std::size_t shown) {
  if (!report.choice) return {};
  const PlanChoice& choice = *report.choice;
  std::string text;
  for (const auto& [run, remark] : choice.remarks) text += fmt::format("- {} {}\n", run, remark);
  if (choice.measured > 0) text += runs_text(choice);
  text += equals_text(choice, shown);
  return choice.spared ? text + spared_text(report) : text;
}

std::string proposed_trials_text(const PlanReply& report, const PlanWords& asked, const Style& style) {
  if (!report.choice || asked.trials == 0) return {};
  const PlanChoice& choice = *report.choice;
  if (choice.trials.empty()) return "\nNo trial would tell more: one plan is the fastest, or nearly so.\n";
  Table table{.columns = {{"trial"}, {"seconds"}, {"longer by"}, {"strategy", Align::left}}};
  for (std::size_t i = 0; i < choice.trials.size(); ++i) {
    const auto& [candidate, loss, launch] = choice.trials[i];
    table.rows.push_back({std::to_string(i + 1), fmt::format("{:#.4g}", candidate.iteration.count()),
                          fmt::format("{:.2f}%", 100 * loss), flags_of(report, candidate)});
  }
  return fmt::format(
             "\nMeasure these first. The plan believed to be the fastest takes {:.2f}% longer, on average, "
             "than the "
             "one that is; after each trial:\n",
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
    if (belief.ran) one["measured_seconds"] = belief.expected->count();
    plans.push_back(std::move(one));
  }
  OrderedJson json{
      {"ranked_by", name_of(choice.by)}, {"measured", choice.measured}, {"plans", std::move(plans)}};
  if (!choice.remarks.empty()) {
    OrderedJson& remarks = json["remarks"] = OrderedJson::array();
    for (const auto& [name, rule] : choice.remarks) remarks.push_back({{"run", name}, {"remark", rule}});
  }
  if (choice.spared) {
    json["fastest"] = point_json(report, asked, choice.spared->candidate, nullptr);
    json["odds_of_fastest"] = choice.spared->odds;
    json["spared"] = names_json(choice.spared->drawbacks);
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
