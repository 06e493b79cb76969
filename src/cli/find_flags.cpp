#include "cli/find_flags.hpp"

namespace headroom::cli {
namespace {

void require(bool met, const char* flag, const char* rule, std::vector<Problem>& problems) {
  if (!met) problems.push_back({flag, rule});
}

}  // namespace

void add_find_flags(Command command, FindFlags& flags) {
  command = command.in(topic::inverse);
  const auto option = [&](const char* name, FlagText& value, const char* type, const char* help) {
    command.option(name, value, type, help);
  };
  option("--find", flags.find, "WHAT",
         "min-devices, max-batch, max-sequence or max-layers: how far one size can go until nothing fits");
  option("--step", flags.step, "N",
         "Try multiples of N only (default: 128 for max-sequence, else 1; GPUs in whole nodes)");
  option("--max-iteration", flags.most_iteration, "TIME",
         "Longest iteration allowed (20s, 1.5min), for --find min-devices or max-batch");
  option("--deadline", flags.deadline, "TIME",
         "Longest training run for --tokens: 30d, '12 hours'. Finds the fewest GPUs");
  option("--odds", flags.odds, "PERCENT",
         "Odds of meeting --deadline or --max-iteration: 80% (default: 50%)");
}

std::optional<Seconds> read_deadline(const FindFlags& flags, std::vector<Problem>& problems) {
  if (!flags.deadline) return {};
  double seconds = 0;
  read_with_unit("--deadline", *flags.deadline, durations, "30d or '12 hours'", seconds, problems);
  return Seconds(seconds);
}

std::optional<double> read_odds(const FindFlags& flags, std::vector<Problem>& problems) {
  if (!flags.odds) return {};
  require(flags.deadline || flags.most_iteration, "--odds", "needs --deadline or --max-iteration", problems);
  std::optional<double> odds = read_part(*flags.odds);
  if (odds && *odds >= 1 && !flags.odds->ends_with('%')) *odds /= 100;  // nobody asks for a part above one
  if (!odds || !(*odds > 0 && *odds < 1)) {
    problems.push_back(
        {"--odds", "must lie between 0 and 100%, such as 80% or 0.8, not '" + *flags.odds + "'"});
  }
  return odds;
}

std::optional<Question> read_question(const FindFlags& flags, const Givens& givens, const Training& training,
                                      std::vector<Problem>& problems) {
  Question question;
  read_choice("--find", flags.find, question.extreme, problems);
  const bool asked = flags.find || flags.deadline;
  const auto asks = [&](Extreme extreme) { return asked && question.extreme == extreme; };
  const bool timed = asks(Extreme::min_devices) || asks(Extreme::max_batch);
  require(givens.devices || asks(Extreme::min_devices), "--devices", "is required", problems);
  require(!givens.global_batch || !asks(Extreme::max_batch), "--global-batch",
          "does not go with --find max-batch, which looks for the batch", problems);
  require(!givens.sequence || !asks(Extreme::max_sequence), "--sequence",
          "does not go with --find max-sequence, which looks for it", problems);
  require(!flags.step || (flags.find && !asks(Extreme::min_devices)), "--step",
          "needs --find max-batch, max-sequence or max-layers", problems);
  require(!flags.most_iteration || timed, "--max-iteration", "needs --find min-devices or max-batch",
          problems);
  require(!flags.deadline || training.tokens > 0, "--deadline",
          "needs --tokens, the length of the training run", problems);
  require(!flags.deadline || question.extreme == Extreme::min_devices, "--deadline",
          "asks for the fewest GPUs: leave out another --find", problems);
  require(!flags.deadline || !flags.most_iteration, "--deadline",
          "says how long an iteration may take: leave out --max-iteration", problems);
  if (asks(Extreme::max_sequence)) question.step = usual_sequence_step;
  read_count("--step", flags.step, question.step, problems);
  if (flags.most_iteration) {
    double seconds = 0;
    read_with_unit("--max-iteration", *flags.most_iteration, durations, "20s or 1.5min", seconds, problems);
    question.within = Seconds(seconds);
  }
  if (asks(Extreme::min_devices)) {
    question.most = usual_most_devices;
    read_count("--devices", givens.devices, question.most, problems);
  }
  if (!asked) return {};
  return question;
}

}  // namespace headroom::cli
