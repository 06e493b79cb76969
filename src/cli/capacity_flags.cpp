#include "cli/capacity_flags.hpp"

#include "io/text.hpp"

namespace headroom::cli {

void add_capacity_flags(Command command, CapacityFlags& flags) {
  const char* group = "Training run";
  command.option("--tokens", flags.tokens, "N", "Tokens to train on (300B, 1.4T): adds days and GPU-hours")
      .group(group);
  command.option("--price-per-gpu-hour", flags.price, "PRICE", "What a GPU costs an hour: 2.50").group(group);
  command.option("--currency", flags.currency, "TEXT", "What prices are in: EUR (default $)").group(group);
  command.option("--power-per-gpu", flags.power, "POWER", "What a GPU draws, for the energy: '700 W', 0.7kW")
      .group(group);
}

Training read_training(const CapacityFlags& flags, std::vector<Problem>& problems) {
  Training training;
  read_quantity("--tokens", flags.tokens, training.tokens, problems);
  if (flags.currency) training.currency = printable(*flags.currency, 8);
  if (flags.currency && !flags.price) {
    problems.push_back({"--currency", "needs --price-per-gpu-hour"});
  }
  constexpr Unit plain[] = {{"", 1}};
  constexpr Unit watts[] = {{"W", 1}, {"kW", 1e3}};
  const auto read = [&](const char* flag, const FlagText& text, std::span<const Unit> units,
                        const char* example, std::optional<double>& value) {
    if (!text) return;
    read_with_unit(flag, *text, units, example, value.emplace(), problems);
    if (!flags.tokens) problems.push_back({flag, "needs --tokens, the length of the training run"});
  };
  read("--price-per-gpu-hour", flags.price, plain, "2.50", training.price_per_device_hour);
  read("--power-per-gpu", flags.power, watts, "'700 W' or 0.7kW", training.device_watts);
  return training;
}

}  // namespace headroom::cli
