// K22 table 4: forward and backward of one layer of the 22B model, in milliseconds, against the model of time.
#include <cmath>

#include <doctest/doctest.h>

#include "time/a100.hpp"

namespace headroom {
namespace {

struct Row {
  const char* experiment;
  bool sequence_parallel;
  RecomputePolicy recompute;
  double forward, backward;  // as printed
};

constexpr Row table_4[] = {
    {"baseline, no recomputation", false, RecomputePolicy::none, 7.7, 11.9},
    {"sequence parallel", true, RecomputePolicy::none, 7.2, 11.8},
    {"baseline + full recomputation", false, RecomputePolicy::full, 7.7, 19.5},
    {"selective", false, RecomputePolicy::selective, 7.7, 13.2},
    {"selective + sequence parallel", true, RecomputePolicy::selective, 7.2, 13.1},
};

struct Predicted {
  double forward, backward;
};

Predicted predict(const Row& row) {
  k22::Run run = k22::gpt_22b();
  run.strategy.sequence_parallel = row.sequence_parallel;
  run.strategy.recompute.policy = row.recompute;
  const LayerCost cost = tests::layer(run);
  const auto milliseconds = [](const PassCost& pass) { return 1e3 * device_time(pass).count(); };
  return {milliseconds(cost.forward), milliseconds(cost.recompute) + milliseconds(backward(cost))};
}

double error(double predicted, double measured) { return std::abs(predicted / measured - 1); }

}  // namespace

TEST_CASE("K22 table 4: each of the ten times within 4%, combined times within 3%") {
  for (const Row& row : table_4) {
    CAPTURE(row.experiment);
    const auto predicted = predict(row);
    CAPTURE(predicted.forward);
    CAPTURE(predicted.backward);
    CHECK(error(predicted.forward, row.forward) < 0.04);
    CHECK(error(predicted.backward, row.backward) < 0.04);
    CHECK(error(predicted.forward + predicted.backward, row.forward + row.backward) < 0.03);
  }
}

TEST_CASE("K22 table 4: overheads over the baseline within 2 points") {
  const auto [base_forward, base_backward] = predict(table_4[0]);
  const double base = table_4[0].forward + table_4[0].backward;
  for (const Row& row : table_4) {
    CAPTURE(row.experiment);
    const auto [forward, backward] = predict(row);
    const double predicted = (forward + backward) / (base_forward + base_backward);
    CHECK(std::abs(predicted - (row.forward + row.backward) / base) < 0.02);
  }
}

TEST_CASE("K22 section 6: a 530B and a 1T layer pay 2% for present work and 36% for full recomputation") {
  for (k22::Run run : {k22::mt_nlg_530b(), k22::gpt_1t()}) {
    CAPTURE(run.model.name);
    const auto total = [](const LayerCost& cost) {
      return device_time(cost.forward) + device_time(cost.recompute) + device_time(backward(cost));
    };
    const Seconds base = total(tests::layer(run));
    CHECK(total(tests::layer(k22::with_both_techniques(run))) / base == doctest::Approx(1.02).epsilon(0.03));
    run.strategy.recompute.policy = RecomputePolicy::full;
    CHECK(total(tests::layer(run)) / base == doctest::Approx(1.36).epsilon(0.03));
  }
}

}  // namespace headroom
