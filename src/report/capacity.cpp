#include "report/capacity.hpp"

#include "report/text.hpp"

namespace headroom {
namespace {

// " (80%: 38.5 to 70.5)".
template <class Text>
std::string range_text(const TrainingInterval& cost, Text text) {
  return fmt::format(" ({:.0f}%: {} to {})", 100 * interval_level, text(cost.low), text(cost.high));
}

// A figure of a training run where there is one.
struct TrainingFigure {
  const char* name;
  std::optional<double> (*figure)(const TrainingCost&);
};
constexpr TrainingFigure training_figures[] = {
    {"days", [](const TrainingCost& cost) { return std::optional(cost.days); }},
    {"device_hours", [](const TrainingCost& cost) { return std::optional(cost.device_hours); }},
    {"price", [](const TrainingCost& cost) { return cost.price; }},
    {"kilowatt_hours", [](const TrainingCost& cost) { return cost.kilowatt_hours; }},
};

OrderedJson figures_json(const TrainingCost& cost) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [name, figure] : training_figures) {
    if (const std::optional<double> value = figure(cost)) json[name] = *value;
  }
  return json;
}

std::string days_text(const TrainingCost& cost) { return fmt::format("{:.1f}", cost.days); }

std::string megawatt_hours_text(const TrainingCost& cost) {
  return fmt::format("{:.1f}", *cost.kilowatt_hours / 1000);
}

// "3.1 h", "22 min", "45 s".
std::string duration(Seconds seconds) {
  const double count = seconds.count();
  if (count >= 48 * 3600) return fmt::format("{:.1f} days", count / 86400);
  if (count >= 3600) return fmt::format("{:.1f} h", count / 3600);
  if (count >= 60) return fmt::format("{:.1f} min", count / 60);
  return fmt::format("{:.1f} s", count);
}

std::string goodput_line(const Training& training, const TrainingCost& cost) {
  const Goodput& goodput = *cost.goodput;
  const Reliability& reliability = *training.reliability;
  std::string text = fmt::format(
      "- goodput {:.1f}%: a failure every {}, {:.0f} in all; a checkpoint after every {} of training{}",
      100 * goodput.productive, duration(goodput.mtbf), cost.failures, duration(goodput.checkpoint_interval),
      reliability.checkpoint_interval ? "" : " (Daly's optimum)");
  if (reliability.repair_time) {
    text += fmt::format("; the odds that {} spare GPUs are enough at a moment are {:.1f}%",
                        reliability.spares, 100 * goodput.running);
  }
  return text + "\n";
}

}  // namespace

std::string human_price(const Training& training, double price) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string& currency = training.currency;
  const std::string before = currency + (!currency.empty() && letter(currency.back()) ? " " : "");
  if (price >= 1e9) return fmt::format("{}{:.2f}B", before, price / 1e9);
  if (price >= 1e6) return fmt::format("{}{:.2f}M", before, price / 1e6);
  if (price >= 1e4) return fmt::format("{}{:.1f}k", before, price / 1e3);
  return fmt::format("{}{:.2f}", before, price);
}

std::string training_line(const Training& training, const TrainingInterval& cost) {
  const TrainingCost& predicted = cost.predicted;
  const auto price = [&](const TrainingCost& at) { return human_price(training, *at.price); };
  std::string text = fmt::format("{} tokens: {} days{}, {:.0f} GPU-hours", human_count(training.tokens),
                                 days_text(predicted), range_text(cost, days_text), predicted.device_hours);
  if (predicted.price) {
    text += fmt::format(", {}{} at {} a GPU-hour", price(predicted), range_text(cost, price),
                        human_price(training, *training.price_per_device_hour));
  }
  if (predicted.kilowatt_hours) {
    text += fmt::format(", {} MWh{} at {} W a GPU{}", megawatt_hours_text(predicted),
                        range_text(cost, megawatt_hours_text), *training.device_watts,
                        training.watts_of_data_sheet ? ", its TDP" : "");
  }
  if (!predicted.goodput) return text + ", without restarts.\n";
  return text + ".\n" + goodput_line(training, predicted);
}

std::vector<Column> training_columns(const Training& training) {
  if (training.tokens <= 0) return {};
  const std::string range = fmt::format("{:.0f}% ", 100 * interval_level);
  std::vector<Column> columns{{"days", Align::right, 4}, {range + "days", Align::right, 5}};
  if (training.price_per_device_hour) {
    columns.push_back({"price"});
    columns.push_back({range + "price", Align::right, 6});
  }
  if (training.device_watts) columns.push_back({"MWh", Align::right, 7});
  return columns;
}

std::vector<std::string> training_cells(const Training& training, const TrainingInterval& cost) {
  const auto& [predicted, low, high] = cost;
  std::vector<std::string> cells{days_text(predicted), range_cell(days_text(low), days_text(high))};
  if (predicted.price) {
    cells.push_back(human_price(training, *predicted.price));
    cells.push_back(range_cell(human_price(training, *low.price), human_price(training, *high.price)));
  }
  if (predicted.kilowatt_hours) cells.push_back(megawatt_hours_text(predicted));
  return cells;
}

std::vector<std::string> training_csv_columns(const Training& training) {
  std::vector<std::string> names;
  if (training.tokens <= 0) return names;
  for (const std::string before : {"", "low_", "high_"}) {
    names.push_back(before + "days");
    names.push_back(before + "device_hours");
    if (training.price_per_device_hour) names.push_back(before + "price");
    if (training.device_watts) names.push_back(before + "kilowatt_hours");
  }
  return names;
}

std::vector<std::string> training_csv_cells(const TrainingInterval& cost) {
  std::vector<std::string> cells;
  for (const TrainingCost* one : {&cost.predicted, &cost.low, &cost.high}) {
    for (const auto& [name, figure] : training_figures) {
      if (const std::optional<double> value = figure(*one)) cells.push_back(fmt::format("{}", *value));
    }
  }
  return cells;
}

OrderedJson training_json(const Training& training, const TrainingInterval& cost) {
  OrderedJson json{{"tokens", number(training.tokens)}, {"iterations", number(cost.predicted.iterations)}};
  json.update(figures_json(cost.predicted));
  if (training.price_per_device_hour) json["price_per_device_hour"] = *training.price_per_device_hour;
  if (training.device_watts) {
    json["device_watts"] = *training.device_watts;
    if (training.watts_of_data_sheet) json["device_watts_are_tdp"] = true;
  }
  if (const std::optional<Goodput>& goodput = cost.predicted.goodput) {
    const Reliability& reliability = *training.reliability;
    json["goodput"] = {{"productive", goodput->productive},
                       {"running", goodput->running},
                       {"mtbf_seconds", goodput->mtbf.count()},
                       {"failures", cost.predicted.failures},
                       {"checkpoint_interval_seconds", goodput->checkpoint_interval.count()},
                       {"checkpoint_seconds", reliability.checkpoint_time.count()},
                       {"restart_seconds", reliability.restart_time.count()},
                       {"spares", reliability.spares}};
    if (reliability.repair_time) json["goodput"]["repair_seconds"] = reliability.repair_time->count();
  }
  json["interval"] = {
      {"level", interval_level}, {"low", figures_json(cost.low)}, {"high", figures_json(cost.high)}};
  return json;
}

}  // namespace headroom
