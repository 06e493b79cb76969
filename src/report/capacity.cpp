#include "report/capacity.hpp"

#include "report/text.hpp"

namespace headroom {
namespace {

// "$1.28M", "EUR 12.8k", "$2.50".
std::string human_price(const Training& training, double price) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string& currency = training.currency;
  const std::string before = currency + (!currency.empty() && letter(currency.back()) ? " " : "");
  if (price >= 1e9) return fmt::format("{}{:.2f}B", before, price / 1e9);
  if (price >= 1e6) return fmt::format("{}{:.2f}M", before, price / 1e6);
  if (price >= 1e4) return fmt::format("{}{:.1f}k", before, price / 1e3);
  return fmt::format("{}{:.2f}", before, price);
}

}  // namespace

std::string training_line(const Training& training, const TrainingCost& cost) {
  std::string text = fmt::format("{} tokens: {:.1f} days, {:.0f} GPU-hours", human_count(training.tokens),
                                 cost.days, cost.device_hours);
  if (cost.price) {
    text += fmt::format(", {} at {} a GPU-hour", human_price(training, *cost.price),
                        human_price(training, *training.price_per_device_hour));
  }
  if (cost.kilowatt_hours) {
    text += fmt::format(", {:.1f} MWh at {} W a GPU", *cost.kilowatt_hours / 1000, *training.device_watts);
  }
  return text + ", without restarts.\n";
}

std::vector<std::string> training_columns(const Training& training) {
  if (training.tokens <= 0) return {};
  std::vector<std::string> names{"days"};
  if (training.price_per_device_hour) names.emplace_back("price");
  if (training.device_watts) names.emplace_back("MWh");
  return names;
}

std::vector<std::string> training_cells(const Training& training, const TrainingCost& cost) {
  std::vector<std::string> cells{fmt::format("{:.1f}", cost.days)};
  if (cost.price) cells.push_back(human_price(training, *cost.price));
  if (cost.kilowatt_hours) cells.push_back(fmt::format("{:.1f}", *cost.kilowatt_hours / 1000));
  return cells;
}

std::vector<std::string> training_csv_columns(const Training& training) {
  if (training.tokens <= 0) return {};
  std::vector<std::string> names{"days", "device_hours"};
  if (training.price_per_device_hour) names.emplace_back("price");
  if (training.device_watts) names.emplace_back("kilowatt_hours");
  return names;
}

std::vector<std::string> training_csv_cells(const TrainingCost& cost) {
  std::vector<std::string> cells{fmt::format("{}", cost.days), fmt::format("{}", cost.device_hours)};
  if (cost.price) cells.push_back(fmt::format("{}", *cost.price));
  if (cost.kilowatt_hours) cells.push_back(fmt::format("{}", *cost.kilowatt_hours));
  return cells;
}

OrderedJson training_json(const Training& training, const TrainingCost& cost) {
  OrderedJson json{{"tokens", number(training.tokens)},
                   {"iterations", number(cost.iterations)},
                   {"days", cost.days},
                   {"device_hours", cost.device_hours}};
  if (cost.price) {
    json["price_per_device_hour"] = *training.price_per_device_hour;
    json["price"] = *cost.price;
  }
  if (cost.kilowatt_hours) {
    json["device_watts"] = *training.device_watts;
    json["kilowatt_hours"] = *cost.kilowatt_hours;
  }
  return json;
}

}  // namespace headroom
