// How much the fullest rank gets of experts that are wanted unevenly.
#include "headroom/model/expert_load.hpp"

#include <vector>

#include <doctest/doctest.h>

#include "headroom/core/counts.hpp"
#include "headroom/io/model_file.hpp"
#include "headroom/parallel/strategy.hpp"
#include "headroom/parallel/strategy_layers.hpp"

namespace headroom {

TEST_CASE("expert load: the most popular of 64 experts receives 1.72 times the mean, or 1.04 times") {
  const auto most = [](MoeBalancing balancing) {
    const RoutedExperts one{
        .experts = {.count = 64, .per_token = 1}, .ranks = 64, .spread = routing_spread(balancing, 4096)};
    const std::vector<DrawnLoads> draws = drawn_loads(one, 2000);
    double sum = 0;
    for (const DrawnLoads& drawn : draws) {
      CHECK(drawn.memory == drawn.time);  // of one layer
      sum += drawn.time;
    }
    return sum / 2000;
  };
  CHECK(most(MoeBalancing::aux_loss) == doctest::Approx(1.72).epsilon(0.01));
  CHECK(most(MoeBalancing::loss_free) == doctest::Approx(1.04).epsilon(0.002));
  CHECK(most(MoeBalancing::none) > 2);
  CHECK(routing_spread(MoeBalancing::none, 4096) == doctest::Approx(0.02 * 64));
}

TEST_CASE("expert load: balanced is least, worst is most, and one rank has it all") {
  for (const std::int64_t experts : {8, 64, 256, 384}) {
    for (std::int64_t ranks = 1; ranks <= experts; ranks *= 2) {
      CAPTURE(experts);
      CAPTURE(ranks);
      const double typical = fullest_rank(ExpertLoad::typical, aux_loss_spread, experts, ranks);
      const double worst = fullest_rank(ExpertLoad::worst, aux_loss_spread, experts, ranks);
      CHECK(fullest_rank(ExpertLoad::balanced, aux_loss_spread, experts, ranks) == 1);
      CHECK(typical >= 1);
      CHECK(worst >= typical * (1 - 1e-12));
      if (ranks == 1) CHECK(worst == 1);
      if (experts % (2 * ranks) != 0) break;
    }
  }
}

TEST_CASE("expert load: memory averages over layers, capacity and tokens limit it, samples widen it") {
  RoutedExperts routed{.experts = {.count = 64, .per_token = 6}, .ranks = 8, .layers = 1, .spread = 0.5};
  const auto mean = [](const RoutedExperts& of, double DrawnLoads::*load) {
    double sum = 0;
    for (const DrawnLoads& drawn : drawn_loads(of, 400)) sum += drawn.*load / 400;
    return sum;
  };
  const double one = mean(routed, &DrawnLoads::memory);
  const double time = mean(routed, &DrawnLoads::time);
  routed.layers = 16;
  // The excess over the mean shrinks by the root of the layers.
  CHECK(mean(routed, &DrawnLoads::memory) - 1 == doctest::Approx((one - 1) / 4).epsilon(0.1));
  CHECK(mean(routed, &DrawnLoads::time) == doctest::Approx(time).epsilon(0.02));
  routed.tokens = 100;
  CHECK(mean(routed, &DrawnLoads::time) > time * 1.02);
  routed.experts.capacity_factor = 1;
  routed.tokens = 0;
  CHECK(mean(routed, &DrawnLoads::time) == doctest::Approx(1));
  routed.experts.capacity_factor.reset();
  routed.spread = 50;
  for (const DrawnLoads& drawn : drawn_loads(routed, 50)) CHECK(drawn.time <= 8);
}

TEST_CASE("expert load: quantiles, and chances that agree with draws") {
  const RoutedExperts routed{
      .experts = {.count = 64, .per_token = 6}, .ranks = 8, .layers = 4, .spread = aux_loss_spread};
  const std::vector<DrawnLoads> draws = drawn_loads(routed, 1000);
  CHECK(drawn_loads(routed, 1000) == draws);
  const double upper = load_quantile(draws, &DrawnLoads::memory, 0.9);
  CHECK(load_quantile(draws, &DrawnLoads::memory, 0) <= load_quantile(draws, &DrawnLoads::memory, 0.5));
  CHECK(load_quantile(draws, &DrawnLoads::memory, 0.5) < upper);
  CHECK(chance_above(draws, &DrawnLoads::memory, upper, 1) == doctest::Approx(0.1).epsilon(0.2));
  CHECK(chance_above(draws, &DrawnLoads::memory, upper, 100) > 0.99);
  CHECK(chance_above(draws, &DrawnLoads::memory, 100, 1e6) < 1e-12);
  CHECK(chance_above({{1, 1}, {1, 1}}, &DrawnLoads::memory, 1.5, 10) == 0);
}

TEST_CASE("expert load: capacity cuts it, a number is as stated, and experts may be in some layers only") {
  Transformer model = read_model("deepseek-v3");
  const MoeImbalance worst{.load = ExpertLoad::worst};
  const double uncut = fullest_rank(worst, model, 64);
  CHECK(uncut > 1.5);
  for (LayerDescription& kind : model.layer_kinds) {
    if (kind.architecture.experts) kind.architecture.experts->capacity_factor = 1.25;
  }
  CHECK(fullest_rank(worst, model, 64) == 1.25);
  CHECK(fullest_rank(MoeImbalance{.factor = 1.1}, model, 64) == 1.1);
  CHECK(fullest_rank(MoeImbalance{.factor = 3}, model, 64) == 1.25);
  // A rank that holds all experts has the mean, and one that holds one is sent each token once at most.
  const Transformer mixtral = read_model("mixtral-8x7b");
  CHECK(fullest_rank(MoeImbalance{.factor = 4}, mixtral, 1) == 1);
  CHECK(fullest_rank(MoeImbalance{.factor = 3}, mixtral, 8) == 3);
  CHECK(fullest_rank(MoeImbalance{.factor = 1e9}, mixtral, 8) == 4);
  CHECK(fullest_rank(MoeImbalance{.factor = 1e9}, mixtral, 4) == 4);
  CHECK(fullest_rank(worst, model, 3) == 1);  // no such ranks can share them
  const Workload workload{.global_batch = 64, .sequence = 4096, .moe_imbalance = worst};
  const Strategy strategy{.data_parallel = 64, .expert_parallel = 64};
  CHECK(bindings(model, strategy, workload)[Symbol::imbalance] == 1.25);
  CHECK(fullest_rank(worst, read_model("llama-3-8b"), 1) == 1);
}

}  // namespace headroom
