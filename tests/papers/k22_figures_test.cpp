// K22 figures 1 and 7 and the figures quoted in its text, from the expressions that the tables give.
#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "headroom/plan/plan.hpp"
#include "papers/k22.hpp"

namespace headroom {
namespace {

using k22::layer_bytes;
using k22::selective;
using k22::tensor;
using k22::tensor_sequence;

// Figure 7 is bytes of one layer as a percentage of eq. 2; the embedding, the head and the pipeline are
// not in it.
double percent_of_eq_2(const Expr& bytes, const k22::Run& run) {
  return 100 * k22::evaluate(bytes, run) / k22::evaluate(layer_bytes(tensor), run);
}

// The peak rank on an 80 GB A100, nothing reserved.
Plan on_a100(const k22::Run& run) {
  Request request;
  request.model = run.model;
  request.system = {.name = "A100", .device = "A100", .memory = 80_GiB, .devices_per_node = 8};
  request.strategy = run.strategy;
  request.workload = run.workload;
  return account(evaluate(request));
}

}  // namespace

TEST_CASE("K22 section 4.1: core attention overtakes the rest of the layer at s = 34h/(5a)") {
  using namespace symbols;
  static_assert(k22::in_its_letters(dropped_bytes(stored_tensors(layer_ops({}), k22::alone, selective())))
                    .substitute(Symbol::sequence, 34 * h / (5 * a)) ==
                layer_bytes(k22::alone, selective()).substitute(Symbol::sequence, 34 * h / (5 * a)));
  CHECK(k22::evaluate(34 * h / (5 * a), k22::gpt3_175b()) == doctest::Approx(870).epsilon(0.001));
}

TEST_CASE("K22 section 5: selective recomputation saves 70% of GPT-3's activations and 65% of MT-NLG's") {
  const auto saved = [](const k22::Run& run) {
    const double all = k22::evaluate(layer_bytes(k22::alone), run);
    return std::round(100 * (all - k22::evaluate(layer_bytes(k22::alone, selective()), run)) / all);
  };
  CHECK(saved(k22::gpt3_175b()) == 70);
  CHECK(saved(k22::mt_nlg_530b()) == 65);
}

TEST_CASE("K22 figure 7: sequence parallelism, 67/62/58/58%") {
  const auto percent = [](const k22::Run& run) {
    return std::round(percent_of_eq_2(layer_bytes(tensor_sequence), run));
  };
  CHECK(percent(k22::gpt_22b()) == 67);
  CHECK(percent(k22::gpt3_175b()) == 62);
  CHECK(percent(k22::mt_nlg_530b()) == 58);
  CHECK(percent(k22::gpt_1t()) == 58);
}

TEST_CASE("K22 figure 7: selective recomputation, 49/57/62/62%") {
  const auto percent = [](const k22::Run& run) {
    return std::round(percent_of_eq_2(layer_bytes(tensor, selective()), run));
  };
  CHECK(percent(k22::gpt_22b()) == 49);
  CHECK(percent(k22::gpt3_175b()) == 57);
  CHECK(percent(k22::mt_nlg_530b()) == 62);
  CHECK(percent(k22::gpt_1t()) == 62);
}

TEST_CASE("K22 figure 7: both, 16/18/20/20%") {
  const auto percent = [](const k22::Run& run) {
    return std::round(percent_of_eq_2(layer_bytes(tensor_sequence, selective()), run));
  };
  CHECK(percent(k22::gpt_22b()) == 16);
  CHECK(percent(k22::gpt3_175b()) == 18);
  CHECK(percent(k22::mt_nlg_530b()) == 20);
  CHECK(percent(k22::gpt_1t()) == 20);
}

// Printed as 8/9/9/9. The last two are 2/21 = 9.52%, so that 9 is cut off where all other percentages of
// the figure are rounded. No term of section 4.3 added above or below brings all 16 to what is printed;
// table 2 alone gives 14.
TEST_CASE("K22 figure 7: full recomputation, 8/9% rounded and 9/9% cut off") {
  const auto percent = [](const k22::Run& run) {
    return percent_of_eq_2(layer_bytes(tensor, k22::full()), run);
  };
  CHECK(std::round(percent(k22::gpt_22b())) == 8);
  CHECK(std::round(percent(k22::gpt3_175b())) == 9);
  CHECK(std::floor(percent(k22::mt_nlg_530b())) == 9);
  CHECK(std::floor(percent(k22::gpt_1t())) == 9);
  CHECK(percent(k22::gpt_1t()) == doctest::Approx(200.0 / 21));
}

TEST_CASE("K22 figure 1: the baseline of all four models exceeds the 80 GB of an A100") {
  for (const k22::Run& run : k22::table_3()) {
    CAPTURE(run.model.name);
    CHECK(on_a100(run).verdict == Verdict::does_not_fit);
  }
}

TEST_CASE("K22 figure 1: with sequence parallelism and selective recomputation all four are under it") {
  for (const k22::Run& run : k22::table_3()) {
    CAPTURE(run.model.name);
    CHECK(on_a100(k22::with_both_techniques(run)).verdict == Verdict::fits);
  }
}

TEST_CASE("K22 figure 1: weights, gradients and optimizer state alone are under it") {
  for (const k22::Run& run : k22::table_3()) {
    const ModelState state = on_a100(run).ranks[0].state;
    CHECK(state.weights + state.gradients + state.optimizer < 80_GiB);
  }
}

}  // namespace headroom
