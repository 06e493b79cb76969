#include "cli/capacity_flags.hpp"

#include "io/text.hpp"

namespace headroom::cli {

void add_capacity_flags(Command command, CapacityFlags& flags) {
  command = command.in(topic::training_run);
  command.option("--tokens", flags.tokens, "N", "Tokens to train on (300B): adds days and GPU-hours");
  command.option("--price-per-gpu-hour", flags.price, "PRICE", "Price per GPU-hour: 2.50");
  command.option("--currency", flags.currency, "TEXT", "Currency of prices: EUR (default $)");
  command.option("--power-per-gpu", flags.power, "POWER",
                 "Power per GPU, for the energy: '700 W', 0.7kW (default: its TDP)");
  command = command.in(topic::failures);
  command.option("--mtbf", flags.mtbf, "TIME",
                 "Mean time between failures of one GPU that stop the run: '50000 h', 5y (Llama 3: 419 in 54 "
                 "days on 16,384 GPUs, '50700 h')");
  command.option("--checkpoint-time", flags.checkpoint_time, "TIME",
                 "Time that the run stops for a checkpoint: 30s");
  command.option("--checkpoint-interval", flags.checkpoint_interval, "TIME",
                 "Training time between checkpoints: 1h (default: Daly's optimum)");
  command.option("--restart-time", flags.restart_time, "TIME",
                 "Time from a failure to resuming from the last checkpoint: 10min");
  command.option(
      "--repair-time", flags.repair_time, "TIME",
      "Time to repair a failed node: 2d (default: replaced at once); a spare takes its place meanwhile");
  command.option("--spares", flags.spares, "N", "Spare GPUs, in whole nodes; paid for too");
}

namespace {

void read_reliability(const CapacityFlags& flags, Training& training, std::vector<Problem>& problems) {
  if (!flags.mtbf) {
    const auto refuse = [&](const char* flag, const FlagText& text) {
      if (text) problems.push_back({flag, "needs --mtbf, how often a GPU fails"});
    };
    refuse("--checkpoint-time", flags.checkpoint_time);
    refuse("--checkpoint-interval", flags.checkpoint_interval);
    refuse("--restart-time", flags.restart_time);
    refuse("--repair-time", flags.repair_time);
    refuse("--spares", flags.spares);
    return;
  }
  if (!flags.tokens) problems.push_back({"--mtbf", "needs --tokens, the length of the training run"});
  const auto read = [&](const char* flag, const FlagText& text, const char* example) {
    double seconds = 1;
    if (text) read_with_unit(flag, *text, durations, example, seconds, problems);
    return Seconds(seconds);
  };
  // They differ by orders of magnitude from run to run, so that no default would be right for many.
  const auto require = [&](const char* flag, const FlagText& text) {
    if (!text) problems.push_back({flag, "is needed with --mtbf"});
  };
  require("--checkpoint-time", flags.checkpoint_time);
  require("--restart-time", flags.restart_time);
  Reliability reliability{
      .device_mtbf = read("--mtbf", flags.mtbf, "'50000 h' or 5y"),
      .checkpoint_time = read("--checkpoint-time", flags.checkpoint_time, "30s or 2min"),
      .restart_time = read("--restart-time", flags.restart_time, "10min"),
  };
  if (flags.checkpoint_interval) {
    reliability.checkpoint_interval = read("--checkpoint-interval", flags.checkpoint_interval, "1h or 30min");
  }
  if (flags.repair_time) reliability.repair_time = read("--repair-time", flags.repair_time, "2d or '12 h'");
  read_count("--spares", flags.spares, reliability.spares, problems);
  if (flags.spares && !flags.repair_time) {
    problems.push_back({"--spares", "needs --repair-time: without it a failed node is replaced at once"});
  }
  training.reliability = reliability;
}

}  // namespace

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
  read_reliability(flags, training, problems);
  return training;
}

}  // namespace headroom::cli
