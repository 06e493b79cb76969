#include "headroom/plan/interval.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "headroom/io/model_file.hpp"
#include "headroom/io/spreads_file.hpp"
#include "headroom/io/system_file.hpp"
#include "plan/requests.hpp"

namespace headroom {
namespace {

Request timed(const std::string& system) {
  Request request = with_both_techniques(gpt3_on_a100());
  request.system = read_system(system);
  return request;
}

bool warned(const Plan& plan, const std::string& code) {
  return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                     [&](const Warning& warning) { return warning.code == code; });
}

}  // namespace

TEST_CASE("interval: of the device whose training steps were measured it is narrow, of others wide") {
  const Plan fitted = account(evaluate(timed("dgx-a100-80g")));
  CHECK(iteration_spread(fitted.request, embedded_spreads()).rates == StepRates::fitted);
  CHECK_FALSE(warned(fitted, "transferred_step_rates"));
  for (const char* system :
       {"dgx-h100-80g", "dgx-h200-141g", "dgx-b200-180g", "dgx-b300", "gb200-nvl72", "gb300-nvl72"}) {
    const Plan plan = account(evaluate(timed(system)));
    CHECK(iteration_spread(plan.request, embedded_spreads()).rates == StepRates::kernels);
    CHECK(warned(plan, "transferred_step_rates"));
  }
}

TEST_CASE(
    "interval: of data sheets it is the widest, of experts wider than of dense models, whatever the device") {
  const auto rates_of = [](Request request) {
    const IterationSpread spread = iteration_spread(request, embedded_spreads());
    CHECK(spread.rates == step_rates(request));
    return spread;
  };
  for (const char* system : {"h20", "l40s", "a100-pcie", "mi300x", "mi355x"}) {
    CHECK(rates_of(timed(system)).rates == StepRates::scaled);
  }
  Request request = timed("dgx-h100-80g");
  const double dense = rates_of(request).spread.logarithm;
  request.model = read_model("mixtral-8x7b");
  CHECK(rates_of(request).rates == StepRates::experts);
  CHECK(rates_of(request).spread.logarithm > dense);
  const double experts = rates_of(request).spread.logarithm;
  request.system = read_system("h20");
  CHECK(rates_of(request).rates == StepRates::scaled);
  CHECK(rates_of(request).spread.logarithm > experts);
  // Its own samples tell what its kernels do; runs of its own, all.
  Performance& performance = *request.system.performance;
  performance.rates.products.tile_peak.origin = Origin::calibrated;
  CHECK(rates_of(request).rates == StepRates::experts);
  performance.run_spread = RunSpread{.logarithm = 0.01, .flash_attention = true};
  CHECK(rates_of(request).rates == StepRates::own_runs);
}

TEST_CASE("interval: a fitted clock narrows it, assumed flash attention widens it, fitted does not") {
  Request request = timed("dgx-h200-141g");
  Rates& rates = request.system.performance->rates;
  rates.products.sustained.origin = Origin::calibrated;
  CHECK(step_rates(request) == StepRates::fitted);
  request.model.architecture.kernels.attention = AttentionKernel::flash;
  CHECK(step_rates(request) == StepRates::kernels);
  CHECK(warned(account(evaluate(request)), "flash_attention_assumed"));
  rates.flash_attention.backward.origin = rates.flash_attention.sustained.origin = Origin::calibrated;
  REQUIRE(rates.flash_attention.tile_peak.origin == Origin::calibrated);
  CHECK(step_rates(request) == StepRates::fitted);
  CHECK_FALSE(warned(account(evaluate(request)), "flash_attention_assumed"));
}

TEST_CASE(
    "interval: it holds the prediction, symmetric in the logarithm, and leaves reserves out of memory") {
  rc::check([] {
    Request request = timed("dgx-a100-80g");
    request.strategy.micro_batch = *rc::gen::element(1, 2, 4);
    const Plan plan = account(evaluate(request));
    const IterationInterval time = iteration_interval(
        plan.timing->iteration.total, iteration_spread(plan.request, embedded_spreads()).spread);
    const double total = plan.timing->iteration.total.count();
    RC_ASSERT(time.low.count() < total && total < time.high.count());
    RC_ASSERT(std::abs(time.low.count() * time.high.count() / (total * total) - 1) < 1e-12);
    const AllocatedInterval memory = allocated_interval(plan, embedded_spreads());
    RC_ASSERT(memory.low < memory.predicted && memory.predicted < memory.high);
    RC_ASSERT(memory.predicted == peak(plan) - plan.ranks[plan.peak_rank].reserved);
  });
}

TEST_CASE("interval: the odds at its ends are 10 and 90%, and at the prediction even") {
  const Spread spread{.logarithm = 0.3, .source = ""};
  const Seconds predicted(7);
  const auto [low, high] = iteration_interval(predicted, spread);
  CHECK(odds_within(predicted, low, spread) == doctest::Approx(0.1));
  CHECK(odds_within(predicted, predicted, spread) == doctest::Approx(0.5));
  CHECK(odds_within(predicted, high, spread) == doctest::Approx(0.9));
  // Where runs are slower than predicted, an error on the wrong side is as likely as any.
  Spread slower = spread;
  slower.slower = true;
  CHECK(odds_within(predicted, low, slower) == 0);
  CHECK(odds_within(predicted, predicted, slower) == doctest::Approx(0));
  CHECK(odds_within(predicted, high, slower) == doctest::Approx(0.8));
}

TEST_CASE("interval: what may be predicted for given odds has them, and is less for higher ones") {
  rc::check([] {
    const Spread spread{
        .logarithm = *rc::gen::inRange(1, 700) / 1000.0, .slower = *rc::gen::arbitrary<bool>(), .source = ""};
    const Seconds limit(*rc::gen::inRange(1, 100000) / 100.0);
    const double odds = *rc::gen::inRange(1, 999) / 1000.0;
    const Seconds predicted = predicted_for(limit, odds, spread);
    RC_ASSERT(std::abs(odds_within(predicted, limit, spread) - odds) < 1e-9);
    RC_ASSERT(predicted_for(limit, odds + 0.0005, spread) < predicted);
  });
}

}  // namespace headroom
