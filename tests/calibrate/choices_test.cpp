// Choices among measured strategies, and what their errors share.
#include "headroom/calibrate/choices.hpp"

#include <cmath>

#include <doctest/doctest.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/io/system_file.hpp"
#include "headroom/model/layer_kinds.hpp"

namespace headroom {
namespace {

Request request_of(std::int64_t t, std::int64_t b, std::int64_t layers = 24) {
  Request request{.model = with_layers(read_model("gpt3-175b"), layers),
                  .system = read_system("dgx-a100-80g")};
  request.strategy = {
      .tensor_parallel = t, .data_parallel = 8 / t, .micro_batch = b, .sequence_parallel = t > 1};
  request.workload = {.global_batch = 16, .sequence = 2048};
  return request;
}

// A run that took this many times its prediction.
MeasuredCase run_of(const std::string& name, const Request& request, double factor,
                    const std::string& source = "a") {
  const double predicted = account(evaluate(request)).timing->iteration.total.count();
  return {.source = source,
          .name = name,
          .request = request,
          .figures = {{.measure = Measure::iteration_seconds, .value = factor * predicted}}};
}

}  // namespace

TEST_CASE("choices: runs of one question, fastest measured first, and the regret of each choice") {
  const std::vector<MeasuredCase> cases{
      run_of("four", request_of(4, 1), 1), run_of("eight", request_of(8, 1), 1),
      run_of("eight again", request_of(8, 1), 1.21), run_of("deeper", request_of(8, 1, 32), 1)};
  const std::vector<MeasuredChoice> choices = choices_among(cases, embedded_spreads());
  REQUIRE(choices.size() == 1);  // the deeper model has one strategy alone
  const MeasuredChoice& choice = choices.front();
  REQUIRE(choice.strategies.size() == 2);
  CHECK(choice.strategies[0].measured < choice.strategies[1].measured);
  const bool eight_first = choice.strategies[0].name == "eight";
  const MeasuredStrategy& eight = choice.strategies[eight_first ? 0 : 1];
  CHECK(eight.measured / eight.predicted == doctest::Approx(1.1));  // of two runs, the geometric mean
  CHECK(regret(choice, 0) == 0);
  CHECK(regret(choice, 1) ==
        doctest::Approx(choice.strategies[1].measured / choice.strategies[0].measured - 1));
  CHECK(choice.regret_after.size() == most_trials_followed + 1);
  CHECK(choice.regret_after.front() == regret(choice, choice.chosen));
}

TEST_CASE("choices: trials find the strategy that predictions have last") {
  std::vector<MeasuredCase> cases{run_of("one", request_of(8, 1), 1.5), run_of("two", request_of(8, 2), 1.5),
                                  run_of("four", request_of(4, 1), 0.5)};
  const MeasuredChoice choice = choices_among(cases, embedded_spreads()).front();
  CHECK(choice.strategies.front().name == "four");
  CHECK(choice.regret_after.back() <= choice.regret_after.front());
}

TEST_CASE("shared errors: by the median of pairs, of traits that enough groups tell") {
  const auto group = [](int i, double error) {
    const std::string source(1, static_cast<char>('a' + i % 3));
    return std::vector{run_of("x" + std::to_string(i), request_of(8, 1, 8 + i), 1, source),
                       run_of("y" + std::to_string(i), request_of(8, 2, 8 + i), std::exp(error), source)};
  };
  std::vector<MeasuredCase> cases;
  for (int i = 0; i < 9; ++i) {
    for (MeasuredCase& it : group(i, i == 8 ? 2 : 0.05)) cases.push_back(std::move(it));  // one outlier
  }
  const SharedErrors errors = fitted_errors(choices_among(cases, embedded_spreads()));
  CHECK(errors.own == 0);  // no pair differs in nothing
  CHECK(errors.micro_batch == doctest::Approx(0.05 / normal_quantile(0.75) / std::sqrt(2)));
  CHECK(errors.expert == errors.micro_batch);  // of all single traits
}

}  // namespace headroom
