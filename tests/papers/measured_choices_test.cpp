// The choice that plan would have made among measured strategies, with the shared errors of other sources.
#include <algorithm>

#include <doctest/doctest.h>

#include "headroom/calibrate/choices.hpp"
#include "headroom/io/run_cases.hpp"
#include "headroom/io/runs_file.hpp"
#include "headroom/io/source_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "paths.hpp"

namespace headroom {

SHARED_TEST_CASE(
    "measured choices: the chosen strategy is among the best three, and trials cut what it loses") {
  const auto file = tests::shared_file("data/measured/runs_2026.json");
  if (!file) return;
  std::vector<MeasuredRun> runs = read_runs(file->string());
  set_keys_by_title(runs);
  const std::vector<MeasuredChoice> choices =
      choices_among(cases_of(runs, {}, {}).measurements.cases, embedded_spreads());
  REQUIRE(choices.size() > 50);
  std::vector<double> regrets;
  std::ptrdiff_t among_three = 0;
  double before = 0;
  double after_three = 0;
  double by_time = 0;
  for (const MeasuredChoice& choice : choices) {
    CAPTURE(choice.question);
    regrets.push_back(regret(choice, choice.chosen));
    if (choice.chosen < 3) ++among_three;
    before += choice.regret_after[0];
    after_three += choice.regret_after[3];
    by_time += regret(choice, choice.by_time);
    CHECK(choice.regret_after[0] < 0.2);
  }
  const auto count = static_cast<double>(choices.size());
  CHECK(median(regrets) < 0.02);
  CHECK(std::count_if(regrets.begin(), regrets.end(), [](double it) { return it > 0.08; }) <= 2);
  CHECK(static_cast<double>(among_three) > 0.95 * count);
  CHECK(before <= by_time + 0.002 * count);  // preferences cost next to nothing
  CHECK(after_three < 0.6 * before);
}

}  // namespace headroom
