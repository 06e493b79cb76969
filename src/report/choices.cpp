#include "report/choices.hpp"

#include <algorithm>
#include <cmath>

#include "report/text.hpp"

namespace headroom {
namespace {

constexpr std::size_t among_best = 3;

std::vector<double> regrets(const JudgedChoices& judged, std::size_t MeasuredChoice::*of) {
  std::vector<double> values;
  for (const MeasuredChoice& choice : judged.choices) values.push_back(regret(choice, choice.*of));
  return values;
}

// "median 0.0%, mean 2.1%, worst 26.3%; the best in 44 of 61, among the best three in 58"
std::string summary(const JudgedChoices& judged, std::size_t MeasuredChoice::*of) {
  const std::vector<double> values = regrets(judged, of);
  double sum = 0;
  for (const double value : values) sum += value;
  std::size_t best = 0;
  std::size_t near = 0;
  for (const MeasuredChoice& choice : judged.choices) {
    if (choice.*of == 0) ++best;
    if (choice.*of < among_best) ++near;
  }
  return fmt::format(
      "median {:.1f}%, mean {:.1f}%, worst {:.1f}%; the best in {} of {}, among the best three in {}",
      100 * median(values), 100 * sum / static_cast<double>(values.size()),
      100 * *std::max_element(values.begin(), values.end()), best, values.size(), near);
}

double mean_after(const JudgedChoices& judged, std::size_t trials) {
  double sum = 0;
  for (const MeasuredChoice& choice : judged.choices) sum += choice.regret_after[trials];
  return sum / static_cast<double>(judged.choices.size());
}

Table table_of(const JudgedChoices& judged, bool all) {
  Table table{.columns = {{"question", Align::left},
                          {"strategies"},
                          {"by time"},
                          {"chosen"},
                          {"place"},
                          {"best", Align::left},
                          {"chosen run", Align::left, 1}}};
  for (const MeasuredChoice& choice : judged.choices) {
    if (!all && choice.chosen == 0 && choice.by_time == 0) continue;
    const auto percent_of = [&](std::size_t of) { return fmt::format("{:+.1f}%", 100 * regret(choice, of)); };
    table.rows.push_back({choice.question, std::to_string(choice.strategies.size()),
                          percent_of(choice.by_time), percent_of(choice.chosen),
                          std::to_string(choice.chosen + 1), choice.strategies.front().name,
                          choice.strategies[choice.chosen].name});
  }
  return table;
}

}  // namespace

std::string choices_text(const JudgedChoices& judged, const Style& style, bool all) {
  if (judged.choices.empty())
    return "\nNo two runs differ in their strategy alone: there is no choice to judge.\n";
  std::string text = fmt::format(
      "\nChoices among the strategies of {} questions; how much longer than the best measured one they "
      "take:\n"
      "- by predicted time: {}\n- as plan chooses: {}\n",
      judged.choices.size(), summary(judged, &MeasuredChoice::by_time),
      summary(judged, &MeasuredChoice::chosen));
  double odds = 0;
  double loss = 0;
  for (const MeasuredChoice& choice : judged.choices) {
    odds += choice.odds;
    loss += choice.loss;
  }
  text +=
      fmt::format("- stated beforehand, of the fastest by predicted time: the best in {:.0f}, mean {:.1f}%\n",
                  odds, 100 * loss / static_cast<double>(judged.choices.size()));
  text +=
      fmt::format("- after 1, 3 and 5 trials (plan --trial, --measured): mean {:.1f}%, {:.1f}%, {:.1f}%\n",
                  100 * mean_after(judged, 1), 100 * mean_after(judged, 3), 100 * mean_after(judged, 5));
  text += "- two strategies that differ in one trait differ in their errors by ";
  for (const StrategyTrait& trait : strategy_traits) {
    const double own = judged.errors.own;
    const double deviation = judged.errors.*trait.deviation;
    text += fmt::format("{}{} {:.1f}%", &trait == strategy_traits.data() ? "" : ", ", words(trait.name),
                        100 * std::sqrt(2 * (deviation * deviation + own * own)));
  }
  text += " (standard deviation)\n";
  const Table table = table_of(judged, all);
  if (!table.rows.empty())
    text += (all ? std::string("\n")
                 : std::string("\nWhere the best was not chosen; --all shows every question:\n")) +
            (style.format == Format::markdown ? "\n" : "") + render_table(table, style);
  return text;
}

OrderedJson choices_json(const JudgedChoices& judged) {
  OrderedJson questions = OrderedJson::array();
  for (const MeasuredChoice& choice : judged.choices) {
    OrderedJson strategies = OrderedJson::array();
    for (const MeasuredStrategy& it : choice.strategies) {
      strategies.push_back(
          {{"case", it.name},
           {"strategy", to_json(it.strategy)},
           {"global_batch", it.global_batch},
           {"predicted_seconds", static_cast<double>(it.global_batch) * it.predicted.count()},
           {"measured_seconds", static_cast<double>(it.global_batch) * it.measured.count()}});
    }
    questions.push_back({{"question", choice.question},
                         {"source", choice.source},
                         {"strategies", std::move(strategies)},
                         {"by_time", choice.by_time},
                         {"chosen", choice.chosen},
                         {"stated_odds_by_time", choice.odds},
                         {"stated_loss_by_time", choice.loss},
                         {"regret_by_time", regret(choice, choice.by_time)},
                         {"regret", regret(choice, choice.chosen)},
                         {"regret_after_trials", choice.regret_after}});
  }
  OrderedJson errors = OrderedJson::object();
  for (const StrategyTrait& trait : strategy_traits)
    errors[std::string(trait.name)] = judged.errors.*trait.deviation;
  errors["own"] = judged.errors.own;
  return {{"questions", std::move(questions)}, {"shared_errors", std::move(errors)}};
}

}  // namespace headroom
